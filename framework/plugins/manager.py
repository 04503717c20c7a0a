"""Finds plugins, checks them and gathers what they add; every complaint names the plugin at fault."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pluggy

from lockgate.errors import AccessDeniedError, LockgateError, PluginError
from lockgate.framework.access import (
    AccessRequest,
    Caller,
    Decision,
    Principal,
    SqlDecision,
    combined,
    combined_sql,
)
from lockgate.framework.options import Option
from lockgate.framework.plugins import hook_answers, hookspecs
from lockgate.framework.plugins.attribution import Attribution, HookError, attributed
from lockgate.framework.plugins.contracts import (
    AuditSink,
    BridgeOperation,
    CommandMaker,
    CommitParticipant,
    FileCollector,
    FilePruner,
    IndexKind,
    KeyProviderFactory,
    LakeMethod,
    LineageSink,
    MaskFactory,
    PlannedChange,
    SystemTable,
    WarehouseTable,
)
from lockgate.framework.plugins.events import Event
from lockgate.framework.plugins.installed import installed
from lockgate.framework.plugins.observers import EventQueues
from lockgate.framework.plugins.sql_access import decided_by_columns

if TYPE_CHECKING:
    from lockgate.framework.store import TableHandle
    from lockgate.procedures import Procedure

DISABLE_VARIABLE = "LOCKGATE_DISABLE_PLUGINS"
_OBSERVERS = frozenset({"lockgate_event"})

T = TypeVar("T")


class PluginManager:
    """The registered plugins and what they add; one for the process comes from `plugins()`.

    Raises `PluginError`, with the plugin's name in `plugin`, if a plugin cannot be imported, implements an
    unknown hook or a hook with a wrong signature, returns a value of another type, or adds a name that
    another plugin has added.
    """

    def __init__(self) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._hooks = sorted(name for name in vars(hookspecs) if name.startswith("lockgate_"))
        self._gathered: dict[str, dict[str, Any]] = {}
        self._origin: dict[str, str] = {}
        self._attribution = Attribution()
        self._lock = threading.RLock()
        self._needs_decisions = False
        self.followers: list[Callable[[], None]] = []  # called after each plugin that is registered
        self.events = EventQueues(self._observe)

    # --- registration ---

    def register(self, plugin: object, name: str, *, origin: str = "register()") -> None:
        """Add `plugin` under `name`; `origin` says in messages where it came from."""
        with self._lock:
            if name in self._origin:
                raise PluginError(
                    f"plugin {name!r} from {origin} conflicts with plugin {name!r} "
                    f"from {self._origin[name]}: rename one of the two, "
                    f"or leave both out by {DISABLE_VARIABLE}={name}",
                    name,
                )
            self._check_marks(plugin, name, origin)
            self._check_authorizer(plugin, name, origin)
            copy = attributed(plugin, name, frozenset(self._hooks), _OBSERVERS, self._attribution)
            if vars(copy).keys() == {"copied"}:
                raise PluginError(
                    f"plugin {name!r} from {origin} adds nothing: {_kind(plugin)} has no function marked "
                    "with @lockgate.plugins.hookimpl; an entry point names a module or object that has",
                    name,
                )
            try:
                self._pluggy.register(copy, name)
                self._pluggy.check_pending()
            except (pluggy.PluginValidationError, ValueError) as error:
                if self._pluggy.has_plugin(name):
                    self._pluggy.unregister(name=name)
                raise PluginError(
                    f"plugin {name!r} from {origin} breaks the plugin contract: "
                    f"{hook_answers.one_line(error)}; "
                    f"the hooks are {', '.join(self._hooks)}",
                    name,
                ) from error
            self._origin[name] = origin
            self._gathered.clear()
        for follow in self.followers:
            follow()

    def unregister(self, name: str) -> None:
        """Remove the plugin called `name`; raises `PluginError` when there is none."""
        with self._lock:
            if name not in self._origin:
                raise PluginError(f"no plugin {name!r} is registered", name)
            self._pluggy.unregister(name=name)
            del self._origin[name]
            self._gathered.clear()

    def load_entry_points(self, entry_points: Iterable[tuple[EntryPoint, str]] | None = None) -> None:
        """Register each installed entry point of group `lockgate`, unless the environment disables it.

        `entry_points` pairs each entry point with its distribution's name; by default the installed ones.
        """
        disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",")}
        found = installed() if entry_points is None else entry_points
        for entry_point, distribution in found:
            if entry_point.name in disabled:
                continue
            origin = f"distribution {distribution!r} ({entry_point.value})"
            try:
                plugin = entry_point.load()
            except (Exception, SystemExit) as error:  # a plugin may raise anything
                raise PluginError(
                    f"plugin {entry_point.name!r} from {origin} cannot be imported: "
                    f"{type(error).__name__}: {hook_answers.one_line(error)}; repair or uninstall it, "
                    f"or leave it out by {DISABLE_VARIABLE}={entry_point.name}",
                    entry_point.name,
                ) from error
            self.register(plugin, entry_point.name, origin=origin)

    def names(self) -> list[str]:
        """Return the names of the registered plugins, sorted."""
        return sorted(self._origin)

    def objects(self) -> list[object]:
        """Return the registered plugins."""
        return [each.copied for each in self._pluggy.get_plugins()]

    # --- what plugins add ---

    def procedures(self) -> Mapping[str, Procedure]:
        """Return every procedure by its name."""
        return self._gather(
            "lockgate_procedures", hook_answers.by_procedure_name, hook_answers.folded_procedure_name
        )

    def bridge_operations(self) -> Mapping[str, BridgeOperation]:
        """Return every operation of the bridge by its name."""
        return self._gather("lockgate_bridge_operations", hook_answers.callables)

    def system_tables(self) -> Mapping[str, SystemTable]:
        """Return every system table by its suffix."""
        return self._gather("lockgate_system_tables", hook_answers.system_tables)

    def warehouse_tables(self) -> Mapping[str, WarehouseTable]:
        """Return every system table of whole warehouses by its name."""
        return self._gather("lockgate_warehouse_tables", hook_answers.warehouse_tables)

    def audit_sinks(self) -> Mapping[str, AuditSink]:
        """Return every destination of audit by its name."""
        return self._gather("lockgate_audit_sinks", hook_answers.audit_sinks)

    def lineage_sinks(self) -> Mapping[str, LineageSink]:
        """Return every receiver of lineage by its name."""
        return self._gather("lockgate_lineage_sinks", hook_answers.lineage_sinks)

    def key_providers(self) -> Mapping[str, KeyProviderFactory]:
        """Return every factory of key providers by its scheme."""
        return self._gather("lockgate_key_providers", hook_answers.callables)

    def index_kinds(self) -> Mapping[str, IndexKind]:
        """Return every kind of the index database by its name."""
        return self._gather("lockgate_index_kinds", hook_answers.index_kinds)

    def masks(self) -> Mapping[str, MaskFactory]:
        """Return every factory of masks by its name."""
        return self._gather("lockgate_masks", hook_answers.masks)

    def cli_commands(self) -> Mapping[str, CommandMaker]:
        """Return every command of the shell by its name."""
        return self._gather("lockgate_cli_commands", hook_answers.callables)

    def options(self, scope: Literal["table", "catalog", "read", "session"]) -> Mapping[str, Option[Any]]:
        """Return every option that is declared for tables, catalogs, reads or Spark sessions, by its key."""
        declared = self._gather("lockgate_options", hook_answers.options)
        start = f"{scope} "
        return {
            name.removeprefix(start): option for name, option in declared.items() if name.startswith(start)
        }

    def lake_methods(self) -> Mapping[str, LakeMethod]:
        """Return every method added to lakes by its name."""
        return self._gather("lockgate_lake_methods", hook_answers.callables)

    def _gather(
        self,
        hook: str,
        items: Callable[[object], Mapping[str, T]],
        folded: Callable[[str], str] = str.lower,
    ) -> Mapping[str, T]:
        """Call the hook of each plugin once, and merge the answers by name; `folded` is equal for names that
        callers cannot tell apart.
        """
        with self._lock:
            if hook not in self._gathered:
                self._gathered[hook] = self._merge(hook, items, folded)
            return self._gathered[hook]

    def _merge(
        self, hook: str, items: Callable[[object], Mapping[str, T]], folded: Callable[[str], str]
    ) -> dict[str, T]:
        merged: dict[str, T] = {}
        owner: dict[str, tuple[str, str]] = {}
        # Sorted, so that a conflict is reported alike whatever the order of installation.
        for plugin, answer in sorted(self._answers(hook), key=lambda pair: pair[0]):
            try:
                added = items(answer)
            except Exception as error:  # what a plugin answers may be anything
                raise self._failed(plugin, hook, error) from error
            for name, value in added.items():
                if folded(name) in owner:
                    other, taken = owner[folded(name)]
                    both = (
                        f"both add {name!r}"
                        if taken == name
                        else f"add {name!r} and {taken!r}, which are one name,"
                    )
                    raise PluginError(
                        f"plugin {plugin!r} and plugin {other!r} {both} in {hook}(): "
                        f"uninstall one of the two, or leave one out by {DISABLE_VARIABLE}={plugin}",
                        plugin,
                    )
                merged[name], owner[folded(name)] = value, (plugin, name)
        return merged

    def _answers(self, hook: str, among: Any = None, **arguments: object) -> list[tuple[str, object]]:
        """Call a hook through pluggy and return its answers, None left out, each with its plugin."""
        answers = self._call(hook, among, **arguments)
        return [(self._attribution.plugin_of(answer), answer) for answer in answers]

    def _call(self, hook: str, among: Any = None, **arguments: object) -> Any:
        self._attribution.clear()
        try:
            return (among or getattr(self._pluggy.hook, hook))(**arguments)
        except HookError as error:
            cause = error.__cause__
            raise self._failed(error.plugin, hook, error if cause is None else cause) from cause

    def _checked(self, hook: str, kind: type[T], among: Any = None, **arguments: object) -> list[T]:
        """Call a hook and return its answers; PluginError for one that is not of `kind`."""
        answers = self._answers(hook, among, **arguments)
        for plugin, answer in answers:
            if not isinstance(answer, kind):
                raise self._failed(plugin, hook, hook_answers.not_of(kind, answer))
        return [answer for _, answer in answers if isinstance(answer, kind)]

    def _has(self, hook: str) -> bool:
        return bool(getattr(self._pluggy.hook, hook).get_hookimpls())

    def _failed(self, plugin: str, hook: str, error: BaseException) -> PluginError:
        return PluginError(
            f"plugin {plugin!r} from {self._origin.get(plugin, 'this process')}: {hook}() failed: "
            f"{type(error).__name__}: {hook_answers.one_line(error)}",
            plugin,
        )

    # --- what plugins decide ---

    def principal(self, caller: Caller) -> Principal:
        """Return the identity of a caller: the first that a plugin gives, else one without groups."""
        if not self._has("lockgate_principal"):
            return Principal(caller.user)
        found = self._call("lockgate_principal", caller=caller)
        if found is None:
            return Principal(caller.user)
        if not isinstance(found, Principal):
            plugin = self._attribution.plugin_of(found)
            raise self._failed(plugin, "lockgate_principal", hook_answers.not_of(Principal, found))
        return found

    def need_decisions(self, needed: bool) -> None:
        """Allow nothing from now on while no plugin decides about access, or everything again."""
        self._needs_decisions = needed

    def decides_access(self) -> bool:
        """Say whether any plugin decides about access, or has to."""
        return self._needs_decisions or self._has("lockgate_authorize")

    def _check_decisions(self) -> None:
        if self._needs_decisions and not self._has("lockgate_authorize"):
            raise AccessDeniedError(
                "nothing is allowed: the application was started with spark.lockgate.governed=true, and no "
                "plugin decides about access; give a catalog its policies by the confs "
                "spark.sql.catalog.<name>.ranger.plugin.*, or register a plugin, as RangerAuthorizer, before "
                "the first statement (docs/governance.md)",
                ("a plugin that decides about access",),
            )

    def authorize(self, request: AccessRequest) -> Decision:
        """Return what all plugins decide together; it raises nothing for a denied action.

        AccessDeniedError while no plugin decides, but one has to (`need_decisions`).
        """
        self._check_decisions()
        return combined(self._checked("lockgate_authorize", Decision, request=request))

    def before_change(self, change: PlannedChange) -> None:
        """Let plugins judge a change of a table; raises their LockgateErrors, else PluginError."""
        self._judged("lockgate_before_change", change=change)

    def before_attach(self, confs: Mapping[str, str]) -> None:
        """Let plugins prepare for a Spark application; raises as `before_change`."""
        self._judged("lockgate_before_attach", confs=confs)

    def _judged(self, hook: str, **arguments: Any) -> None:
        try:
            self._call(hook, **arguments)
        except PluginError as error:
            raise error.__cause__ if isinstance(error.__cause__, LockgateError) else error from None

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], *, records: bool = True
    ) -> SqlDecision:
        """Return what all plugins decide together about a query of Spark.

        For plugins without an answer in SQL it calls `lockgate_authorize`. `types` are those of the columns;
        `records` says whether to record the decision, or only to preview it.
        """
        self._check_decisions()
        found = self._checked(
            "lockgate_authorize_sql", SqlDecision, request=request, types=types, records=records
        )
        with_sql = {each.plugin for each in self._pluggy.hook.lockgate_authorize_sql.get_hookimpls()}
        others = self._pluggy.subset_hook_caller("lockgate_authorize", with_sql)

        def decide(narrower: AccessRequest) -> Decision:
            return combined(self._checked("lockgate_authorize", Decision, among=others, request=narrower))

        return combined_sql([*found, decided_by_columns(request, types, decide)])

    # --- what takes part in scans and commits ---

    def pruners(self, table: TableHandle) -> list[tuple[str, FilePruner]]:
        """Return the pruners of a table, each with its plugin; PluginError if two have one name."""
        found = self._listed("lockgate_pruners", hook_answers.pruners, table=table)
        _check_names("pruner", [(plugin, pruner.name) for plugin, pruner in found])
        return found

    def file_collectors(self, table: TableHandle) -> list[tuple[str, FileCollector]]:
        """Return the collectors of a table, each with its plugin; PluginError if two have one name."""
        found = self._listed("lockgate_file_collectors", hook_answers.collectors, table=table)
        _check_names("file collector", [(plugin, collector.name) for plugin, collector in found])
        return found

    def commit_participants(self, table: TableHandle) -> list[CommitParticipant]:
        """Return the participants of a commit to a table."""
        found = self._listed("lockgate_commit_participants", hook_answers.participants, table=table)
        return [participant for _, participant in found]

    def _listed(
        self, hook: str, check: Callable[[object], list[T]], **arguments: object
    ) -> list[tuple[str, T]]:
        """Call a hook that answers lists, and return their items in order, each with its plugin."""
        if not self._has(hook):
            return []
        found: list[tuple[str, T]] = []
        for plugin, answer in self._answers(hook, **arguments):
            try:
                found += [(plugin, each) for each in check(answer)]
            except Exception as error:  # what a plugin answers may be anything
                raise self._failed(plugin, hook, error) from error
        return found

    # --- what plugins observe ---

    def event(self, event: Event) -> None:
        """Let plugins observe `event`, later and on other threads; their errors never reach the caller."""
        if self._has("lockgate_event"):
            self.events.publish(event, self._observers())

    def _observers(self) -> Mapping[str, Callable[..., Any]]:
        """Return, by plugin, the call of its observers of events, and of hook wrappers, but of no others."""
        with self._lock:
            if "lockgate_event" not in self._gathered:
                found = self._pluggy.hook.lockgate_event.get_hookimpls()
                observers = {each.plugin_name: each.plugin for each in found if not each.wrapper}
                self._gathered["lockgate_event"] = {
                    name: self._pluggy.subset_hook_caller(
                        "lockgate_event", [each for each in observers.values() if each is not plugin]
                    )
                    for name, plugin in observers.items()
                }
            return self._gathered["lockgate_event"]

    def _observe(self, name: str, event: Event) -> list[tuple[str, BaseException]]:
        self._attribution.clear()
        observer = self._observers().get(name)
        try:
            if observer is not None:  # the plugin may be gone by now
                observer(event=event)
        except Exception as error:  # a hook wrapper may raise anything
            return [*self._attribution.failures, ("a hook wrapper", error)]
        return list(self._attribution.failures)

    def _check_authorizer(self, plugin: object, name: str, origin: str) -> None:
        """Refuse a plugin that decides about queries of Spark alone: reads of Python would be open."""
        if hasattr(plugin, "lockgate_authorize_sql") and not hasattr(plugin, "lockgate_authorize"):
            raise PluginError(
                f"plugin {name!r} from {origin} implements lockgate_authorize_sql without "
                "lockgate_authorize, which decides about all but queries of Spark: implement both",
                name,
            )

    def _check_marks(self, plugin: object, name: str, origin: str) -> None:
        """Refuse an unmarked function that is named like a hook: pluggy would ignore it without a word."""
        for attribute in self._hooks:
            function = getattr(plugin, attribute, None)
            if callable(function) and not hasattr(function, f"{hookspecs.PROJECT}_impl"):
                raise PluginError(
                    f"plugin {name!r} from {origin} breaks the plugin contract: {attribute} is not marked "
                    f"with @lockgate.plugins.hookimpl",
                    name,
                )


def _kind(plugin: object) -> str:
    name = getattr(plugin, "__name__", None)
    return type(plugin).__name__ if name is None else f"{type(plugin).__name__} {name!r}"


def _check_names(what: str, named: Iterable[tuple[str, str]]) -> None:
    owner: dict[str, str] = {}
    for plugin, name in named:
        if name in owner:
            raise PluginError(
                f"plugin {plugin!r} and plugin {owner[name]!r} both add {what} {name!r}: "
                f"leave one out by {DISABLE_VARIABLE}={plugin}",
                plugin,
            )
        owner[name] = plugin
