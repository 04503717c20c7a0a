"""The plugin manager merges contributions and refuses conflicts; each error names the plugin."""

from __future__ import annotations

import types
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import PluginError
from lockgate.framework.plugins import PluginManager, SetPruner, hookimpl, plugins


def module(**hooks: Any) -> types.ModuleType:
    """Make a plugin of functions, each marked as a hook."""
    plugin = types.ModuleType("made_up")
    for name, function in hooks.items():
        setattr(plugin, name, hookimpl(function))
    return plugin


def no_procedures() -> list[Any]:
    return []


def test_contributions_are_merged() -> None:
    manager = PluginManager()
    manager.register(module(lockgate_bridge_operations=lambda: {"a.b": lambda context, request: 1}), "one")
    manager.register(module(lockgate_bridge_operations=lambda: {"a.c": lambda context, request: 2}), "two")
    assert sorted(manager.bridge_operations()) == ["a.b", "a.c"]
    assert manager.names() == ["one", "two"]


def test_later_registrations_take_effect() -> None:
    manager = PluginManager()
    assert manager.key_providers() == {}
    manager.register(module(lockgate_key_providers=lambda: {"vault": lambda spec: None}), "vault")
    assert list(manager.key_providers()) == ["vault"]
    manager.unregister("vault")
    assert manager.key_providers() == {}


def test_two_plugins_with_the_same_name() -> None:
    manager = PluginManager()
    manager.register(module(lockgate_procedures=no_procedures), "one", origin="distribution 'a'")
    with pytest.raises(
        PluginError, match=r"'one' from distribution 'b' conflicts .*distribution 'a'"
    ) as caught:
        manager.register(module(), "one", origin="distribution 'b'")
    assert caught.value.plugin == "one"


def test_two_plugins_that_add_the_same_name() -> None:
    manager = PluginManager()
    manager.register(module(lockgate_key_providers=lambda: {"vault": print}), "one")
    manager.register(module(lockgate_key_providers=lambda: {"vault": print}), "two")
    with pytest.raises(PluginError, match=r"'two' and plugin 'one' both add 'vault'") as caught:
        manager.key_providers()
    assert caught.value.plugin == "two"


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, context: object) -> list[Any]:
        return []


@pytest.mark.parametrize("name", ["Expire_Snapshots", "expiresnapshots", "EXPIRE_snap_shots"])
def test_a_procedure_does_not_replace_one_with_an_equivalent_name(name: str) -> None:
    manager = PluginManager()
    manager.register(module(lockgate_procedures=lambda: [Named("expire_snapshots")]), "one")
    manager.register(module(lockgate_procedures=lambda: [Named(name)]), "two")
    with pytest.raises(PluginError, match=r"'two' and plugin 'one' add .*, which are one name"):
        manager.procedures()
    twice = PluginManager()
    twice.register(module(lockgate_procedures=lambda: [Named("expire_snapshots"), Named(name)]), "three")
    with pytest.raises(PluginError, match="is listed twice"):
        twice.procedures()


def test_a_plugin_without_hooks_is_refused() -> None:
    @hookimpl
    def lockgate_procedures() -> list[Any]:
        return []

    with pytest.raises(PluginError, match=r"'odd'.* adds nothing: function 'lockgate_procedures' has no"):
        PluginManager().register(lockgate_procedures, "odd")
    with pytest.raises(PluginError, match=r"'empty'.* adds nothing: module 'made_up'"):
        PluginManager().register(types.ModuleType("made_up"), "empty")


def leave() -> Any:
    raise SystemExit(3)


def test_a_plugin_that_exits_does_not_end_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving_plugin.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    manager = PluginManager()
    with pytest.raises(PluginError, match=r"'leaving'.* cannot be imported: SystemExit"):
        manager.load_entry_points([(EntryPoint("leaving", "leaving_plugin", "lockgate"), "leaving-dist")])
    manager.register(module(lockgate_procedures=leave), "late")
    with pytest.raises(PluginError, match=r"'late'.* failed: SystemExit"):
        manager.procedures()


def test_wrong_signature() -> None:
    manager = PluginManager()
    with pytest.raises(
        PluginError, match=r"'odd'.*breaks the plugin contract.*lockgate_procedures"
    ) as caught:
        manager.register(module(lockgate_procedures=lambda catalog: []), "odd")
    assert caught.value.plugin == "odd"
    assert manager.names() == []
    assert manager.procedures() == {}


def test_unknown_hook() -> None:
    def misspelt() -> list[Any]:
        return []

    with pytest.raises(PluginError, match=r"'odd'.*lockgate_procedure.*the hooks are .*lockgate_procedures"):
        PluginManager().register(module(lockgate_procedure=misspelt), "odd")


def test_hook_without_its_mark() -> None:
    plugin = types.SimpleNamespace(lockgate_procedures=print)
    with pytest.raises(PluginError, match=r"'odd'.*is not marked"):
        PluginManager().register(plugin, "odd")


@pytest.mark.parametrize(
    ("hook", "answer", "complaint"),
    [
        ("lockgate_procedures", "compact", "expected a list of procedures"),
        ("lockgate_procedures", [object()], "is not an instance"),
        ("lockgate_bridge_operations", [], "expected a mapping of names"),
        ("lockgate_bridge_operations", {"a": 1}, "cannot be called"),
        ("lockgate_system_tables", {"pin": object()}, "lacks schema"),
        ("lockgate_key_providers", {1: print}, "expected a mapping of names"),
        ("lockgate_lake_methods", {"join": None}, "cannot be called"),
    ],
)
def test_answer_of_a_wrong_type(hook: str, answer: object, complaint: str) -> None:
    manager = PluginManager()
    manager.register(module(**{hook: lambda: answer}), "odd")
    with pytest.raises(PluginError, match=complaint) as caught:
        getattr(manager, hook.removeprefix("lockgate_"))()
    assert caught.value.plugin == "odd"


def test_hook_that_fails() -> None:
    def fail() -> list[Any]:
        raise OSError("no network")

    manager = PluginManager()
    manager.register(module(lockgate_procedures=fail), "odd")
    with pytest.raises(PluginError, match=r"'odd'.*lockgate_procedures\(\) failed: OSError: no network"):
        manager.procedures()


def test_entry_point_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_plugin_module.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_point = EntryPoint("broken", "broken_plugin_module", "lockgate")
    with pytest.raises(
        PluginError, match=r"'broken' from distribution 'shop'.*a_module_that_is_not_there"
    ) as caught:
        PluginManager().load_entry_points([(entry_point, "shop")])
    assert caught.value.plugin == "broken"
    monkeypatch.setenv("LOCKGATE_DISABLE_PLUGINS", "other, broken")
    PluginManager().load_entry_points([(entry_point, "shop")])


def test_the_process_loads_the_built_in_plugins() -> None:
    assert {"lookup", "procedures"} <= set(plugins().names())
    assert "procedure.call" in plugins().bridge_operations()
    assert plugins() is plugins()


def test_a_wrapper_changes_contributions() -> None:
    manager = PluginManager()

    @hookimpl(wrapper=True)
    def without_vaults() -> Any:
        answers = yield
        return [{name: make for name, make in each.items() if name != "vault"} for each in answers]

    manager.register(module(lockgate_key_providers=lambda: {"vault": print, "file2": print}), "keys")
    wrapper = types.SimpleNamespace(lockgate_key_providers=without_vaults)
    manager.register(wrapper, "filter")
    assert list(manager.key_providers()) == ["file2"]


def test_plugins_run_in_their_requested_order() -> None:
    asked: list[str] = []

    def note(name: str) -> Any:
        def lockgate_masks() -> dict[str, Any]:
            asked.append(name)
            return {}

        return lockgate_masks

    manager = PluginManager()
    for name, marks in {"last": {"trylast": True}, "first": {"tryfirst": True}, "middle": {}}.items():
        manager.register(types.SimpleNamespace(lockgate_masks=hookimpl(**marks)(note(name))), name)
    manager.masks()
    assert asked == ["first", "middle", "last"]


def test_methods_of_an_object_are_hooks_too() -> None:
    class Plugin:
        @hookimpl
        def lockgate_key_providers(self) -> dict[str, Any]:
            return {"vault": print}

    manager = PluginManager()
    manager.register(Plugin(), "object")
    assert list(manager.key_providers()) == ["vault"]


class FormerKind:
    """A kind of index with the method names of the previous release."""

    def accepts(self, data_type: Any) -> bool:
        return True

    def keys(self, values: Any, data_type: Any) -> list[int]:
        return []

    def asked(self, comparison: Any, data_type: Any) -> str:
        return f"keys of {comparison}"


class FormerPruner:
    """A pruner with the method names of the previous release."""

    name = "former"

    def keeps(self, predicate: Any, files: Any) -> list[bool]:
        return [True for _ in files]

    def left(self, predicate: Any, files: Any) -> str:
        return f"flags for {predicate}"


def test_former_names_of_methods_still_work_with_a_warning() -> None:
    manager, kind, pruner = PluginManager(), FormerKind(), FormerPruner()
    manager.register(
        module(lockgate_index_kinds=lambda: {"old": kind}, lockgate_pruners=lambda table: [pruner]), "old"
    )
    with pytest.warns(DeprecationWarning, match=r"rename FormerKind\.asked to lookup_keys"):
        found = manager.index_kinds()["old"]
    assert found.lookup_keys("c", None) == "keys of c"
    with pytest.warns(DeprecationWarning, match=r"rename FormerPruner\.left to keep_files"):
        ((_, offered),) = manager.pruners(None)
    assert isinstance(offered, SetPruner)
    assert offered.keep_files("p", ()) == "flags for p"
    assert manager.index_kinds()["old"] is kind  # no second warning for the same object


def test_a_former_name_on_an_object_with_fixed_attributes() -> None:
    class Slotted:
        __slots__ = ()
        accepts, keys, asked = FormerKind.accepts, FormerKind.keys, FormerKind.asked

    manager = PluginManager()
    manager.register(module(lockgate_index_kinds=lambda: {"old": Slotted()}), "old")
    complaint = pytest.raises(PluginError, match=r"lacks lookup_keys\(\)")
    with pytest.warns(DeprecationWarning, match=r"Slotted\.asked"), complaint:
        manager.index_kinds()
