"""Finds plugins, checks them and collects their contributions; every error names the plugin at fault."""

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
from lockgate.framework.plugins.sql_access import decide_by_columns

if TYPE_CHECKING:
    from lockgate.framework.store import TableHandle
    from lockgate.procedures import Procedure

DISABLE_VARIABLE = "LOCKGATE_DISABLE_PLUGINS"
_OBSERVERS = frozenset({"lockgate_event"})

T = TypeVar("T")


class PluginManager:
    """The registered plugins and their contributions; `plugins()` returns the one of the process.

    Raises `PluginError`, with the plugin's name in `plugin`, if a plugin cannot be imported, implements an
    unknown hook or a hook with a wrong signature, returns a value of another type, or adds a name that
    another plugin has added.
    """

    def __init__(self) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._hooks = sorted(name for name in vars(hookspecs) if name.startswith("lockgate_"))
        self._contributions: dict[str, dict[str, Any]] = {}
        self._origins: dict[str, str] = {}
        self._attribution = Attribution()
        self._lock = threading.RLock()
        self._decisions_required = False
        self.followers: list[Callable[[], None]] = []  # called after each registration
        self.events = EventQueues(self._observe)

    # --- registration ---

    def register(self, plugin: object, name: str, *, origin: str = "register()") -> None:
        """Add `plugin` under `name`; messages show `origin`, where it came from."""
        with self._lock:
            if name in self._origins:
                raise PluginError(
                    f"plugin {name!r} from {origin} conflicts with plugin {name!r} "
                    f"from {self._origins[name]}: rename one of the two, "
                    f"or leave both out by {DISABLE_VARIABLE}={name}",
                    name,
                )
            self._check_marks(plugin, name, origin)
            self._check_authorizer(plugin, name, origin)
            copy = attributed(plugin, name, frozenset(self._hooks), _OBSERVERS, self._attribution)
            if vars(copy).keys() == {"original"}:
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
            self._origins[name] = origin
            self._contributions.clear()
        for follow in self.followers:
            follow()

    def unregister(self, name: str) -> None:
        """Remove the plugin called `name`; raises `PluginError` when there is none."""
        with self._lock:
            if name not in self._origins:
                raise PluginError(f"no plugin {name!r} is registered", name)
            self._pluggy.unregister(name=name)
            del self._origins[name]
            self._contributions.clear()

    def load_entry_points(self, entry_points: Iterable[tuple[EntryPoint, str]] | None = None) -> None:
        """Register each installed entry point of group `lockgate`, unless the environment disables it.

        `entry_points` pairs each entry point with its distribution's name; by default the installed ones.
        """
        disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",")}
        if entry_points is None:
            entry_points = installed()
        for entry_point, distribution in entry_points:
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
        return sorted(self._origins)

    def objects(self) -> list[object]:
        """Return the registered plugins."""
        return [each.original for each in self._pluggy.get_plugins()]

    # --- contributions ---

    def procedures(self) -> Mapping[str, Procedure]:
        """Return every procedure by its name."""
        return self._collect(
            "lockgate_procedures", hook_answers.by_procedure_name, hook_answers.folded_procedure_name
        )

    def bridge_operations(self) -> Mapping[str, BridgeOperation]:
        """Return every operation of the bridge by its name."""
        return self._collect("lockgate_bridge_operations", hook_answers.callables)

    def system_tables(self) -> Mapping[str, SystemTable]:
        """Return every system table by its suffix."""
        return self._collect("lockgate_system_tables", hook_answers.system_tables)

    def warehouse_tables(self) -> Mapping[str, WarehouseTable]:
        """Return every system table of whole warehouses by its name."""
        return self._collect("lockgate_warehouse_tables", hook_answers.warehouse_tables)

    def audit_sinks(self) -> Mapping[str, AuditSink]:
        """Return every destination of audit by its name."""
        return self._collect("lockgate_audit_sinks", hook_answers.audit_sinks)

    def lineage_sinks(self) -> Mapping[str, LineageSink]:
        """Return every receiver of lineage by its name."""
        return self._collect("lockgate_lineage_sinks", hook_answers.lineage_sinks)

    def key_providers(self) -> Mapping[str, KeyProviderFactory]:
        """Return every factory of key providers by its scheme."""
        return self._collect("lockgate_key_providers", hook_answers.callables)

    def index_kinds(self) -> Mapping[str, IndexKind]:
        """Return every kind of the index database by its name."""
        return self._collect("lockgate_index_kinds", hook_answers.index_kinds)

    def masks(self) -> Mapping[str, MaskFactory]:
        """Return every factory of masks by its name."""
        return self._collect("lockgate_masks", hook_answers.masks)

    def cli_commands(self) -> Mapping[str, CommandMaker]:
        """Return every command of the shell by its name."""
        return self._collect("lockgate_cli_commands", hook_answers.callables)

    def options(self, scope: Literal["table", "catalog", "read", "session"]) -> Mapping[str, Option[Any]]:
        """Return every option that is declared for tables, catalogs, reads or Spark sessions, by its key."""
        declared = self._collect("lockgate_options", hook_answers.options)
        start = f"{scope} "
        return {
            name.removeprefix(start): option for name, option in declared.items() if name.startswith(start)
        }

    def lake_methods(self) -> Mapping[str, LakeMethod]:
        """Return every method that plugins add to lakes, by its name."""
        return self._collect("lockgate_lake_methods", hook_answers.callables)

    def _collect(
        self,
        hook: str,
        items: Callable[[object], Mapping[str, T]],
        folded: Callable[[str], str] = str.lower,
    ) -> Mapping[str, T]:
        """Call the hook of each plugin once, and merge the answers by name; `folded` makes names equal that
        callers cannot distinguish.
        """
        with self._lock:
            if hook not in self._contributions:
                self._contributions[hook] = self._merge(hook, items, folded)
            return self._contributions[hook]

    def _merge(
        self, hook: str, items: Callable[[object], Mapping[str, T]], folded: Callable[[str], str]
    ) -> dict[str, T]:
        merged: dict[str, T] = {}
        owners: dict[str, tuple[str, str]] = {}
        # Sorted, so that a conflict has the same message in any order of installation.
        for plugin, answer in sorted(self._answers(hook), key=lambda pair: pair[0]):
            try:
                values = items(answer)
            except Exception as error:  # a plugin may answer anything
                raise self._error(plugin, hook, error) from error
            for name, value in values.items():
                if folded(name) in owners:
                    other, other_name = owners[folded(name)]
                    both = (
                        f"both add {name!r}"
                        if other_name == name
                        else f"add {name!r} and {other_name!r}, which are one name,"
                    )
                    raise PluginError(
                        f"plugin {plugin!r} and plugin {other!r} {both} in {hook}(): "
                        f"uninstall one of the two, or leave one out by {DISABLE_VARIABLE}={plugin}",
                        plugin,
                    )
                merged[name], owners[folded(name)] = value, (plugin, name)
        return merged

    def _answers(self, hook: str, among: Any = None, **arguments: object) -> list[tuple[str, object]]:
        """Call a hook through pluggy and return its answers except None, each with its plugin."""
        answers = self._call(hook, among, **arguments)
        return [(self._attribution.plugin_of(answer), answer) for answer in answers]

    def _call(self, hook: str, among: Any = None, **arguments: object) -> Any:
        self._attribution.clear()
        try:
            return (among or getattr(self._pluggy.hook, hook))(**arguments)
        except HookError as error:
            cause = error.__cause__
            raise self._error(error.plugin, hook, error if cause is None else cause) from cause

    def _checked(self, hook: str, kind: type[T], among: Any = None, **arguments: object) -> list[T]:
        """Call a hook and return its answers; PluginError for one that is not of `kind`."""
        answers = self._answers(hook, among, **arguments)
        for plugin, answer in answers:
            if not isinstance(answer, kind):
                raise self._error(plugin, hook, hook_answers.wrong_type(kind, answer))
        return [answer for _, answer in answers if isinstance(answer, kind)]

    def _has(self, hook: str) -> bool:
        return bool(getattr(self._pluggy.hook, hook).get_hookimpls())

    def _error(self, plugin: str, hook: str, error: BaseException) -> PluginError:
        return PluginError(
            f"plugin {plugin!r} from {self._origins.get(plugin, 'this process')}: {hook}() failed: "
            f"{type(error).__name__}: {hook_answers.one_line(error)}",
            plugin,
        )

    # --- decisions ---

    def principal(self, caller: Caller) -> Principal:
        """Return the identity of a caller: the first answer of a plugin, by default one without groups."""
        if not self._has("lockgate_principal"):
            return Principal(caller.user)
        principal = self._call("lockgate_principal", caller=caller)
        if principal is None:
            return Principal(caller.user)
        if not isinstance(principal, Principal):
            plugin = self._attribution.plugin_of(principal)
            raise self._error(plugin, "lockgate_principal", hook_answers.wrong_type(Principal, principal))
        return principal

    def require_decisions(self, required: bool) -> None:
        """Set whether everything is refused, instead of allowed, while no plugin decides about access."""
        self._decisions_required = required

    def decides_access(self) -> bool:
        """Return whether a plugin decides about access, or one is required to."""
        return self._decisions_required or self._has("lockgate_authorize")

    def _check_decisions(self) -> None:
        if self._decisions_required and not self._has("lockgate_authorize"):
            raise AccessDeniedError(
                "nothing is allowed: the application was started with spark.lockgate.governed=true, and no "
                "plugin decides about access; give a catalog its policies by the confs "
                "spark.sql.catalog.<name>.ranger.plugin.*, or register a plugin, as RangerAuthorizer, before "
                "the first statement (docs/governance.md)",
                ("a plugin that decides about access",),
            )

    def authorize(self, request: AccessRequest) -> Decision:
        """Return the combined decision of all plugins; a denied action is no error here.

        Raises AccessDeniedError while no plugin decides, but one is required (`require_decisions`).
        """
        self._check_decisions()
        return combined(self._checked("lockgate_authorize", Decision, request=request))

    def before_change(self, change: PlannedChange) -> None:
        """Let plugins check a change of a table; raises their LockgateErrors, and PluginError for other
        errors.
        """
        self._call_checks("lockgate_before_change", change=change)

    def before_attach(self, confs: Mapping[str, str]) -> None:
        """Let plugins prepare for a Spark application; raises as `before_change`."""
        self._call_checks("lockgate_before_attach", confs=confs)

    def _call_checks(self, hook: str, **arguments: Any) -> None:
        try:
            self._call(hook, **arguments)
        except PluginError as error:
            raise error.__cause__ if isinstance(error.__cause__, LockgateError) else error from None

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], *, records: bool = True
    ) -> SqlDecision:
        """Return the combined decision of all plugins about a query of Spark.

        For plugins without an answer in SQL it calls `lockgate_authorize`. `types` are those of the columns;
        With `records` the decision is audited, otherwise it is a preview.
        """
        self._check_decisions()
        sql_decisions = self._checked(
            "lockgate_authorize_sql", SqlDecision, request=request, types=types, records=records
        )
        with_sql = {each.plugin for each in self._pluggy.hook.lockgate_authorize_sql.get_hookimpls()}
        others = self._pluggy.subset_hook_caller("lockgate_authorize", with_sql)

        def decide(column_request: AccessRequest) -> Decision:
            return combined(
                self._checked("lockgate_authorize", Decision, among=others, request=column_request)
            )

        return combined_sql([*sql_decisions, decide_by_columns(request, types, decide)])

    # --- scans and commits ---

    def pruners(self, table: TableHandle) -> list[tuple[str, FilePruner]]:
        """Return the pruners of a table, each with its plugin; PluginError if two have one name."""
        pruners = self._listed("lockgate_pruners", hook_answers.pruners, table=table)
        _check_names("pruner", [(plugin, pruner.name) for plugin, pruner in pruners])
        return pruners

    def file_collectors(self, table: TableHandle) -> list[tuple[str, FileCollector]]:
        """Return the collectors of a table, each with its plugin; PluginError if two have one name."""
        collectors = self._listed("lockgate_file_collectors", hook_answers.collectors, table=table)
        _check_names("file collector", [(plugin, collector.name) for plugin, collector in collectors])
        return collectors

    def commit_participants(self, table: TableHandle) -> list[CommitParticipant]:
        """Return the participants of a commit to a table."""
        participants = self._listed("lockgate_commit_participants", hook_answers.participants, table=table)
        return [participant for _, participant in participants]

    def _listed(
        self, hook: str, check: Callable[[object], list[T]], **arguments: object
    ) -> list[tuple[str, T]]:
        """Call a hook that answers lists, and return their items in order, each with its plugin."""
        if not self._has(hook):
            return []
        items: list[tuple[str, T]] = []
        for plugin, answer in self._answers(hook, **arguments):
            try:
                items += [(plugin, each) for each in check(answer)]
            except Exception as error:  # a plugin may answer anything
                raise self._error(plugin, hook, error) from error
        return items

    # --- events ---

    def event(self, event: Event) -> None:
        """Let plugins observe `event`, later and on other threads; their errors never reach the caller."""
        if self._has("lockgate_event"):
            self.events.publish(event, self._observers())

    def _observers(self) -> Mapping[str, Callable[..., Any]]:
        """Return, by plugin, a hook call that runs only its observer and the hook wrappers."""
        with self._lock:
            if "lockgate_event" not in self._contributions:
                implementations = self._pluggy.hook.lockgate_event.get_hookimpls()
                observers = {each.plugin_name: each.plugin for each in implementations if not each.wrapper}
                self._contributions["lockgate_event"] = {
                    name: self._pluggy.subset_hook_caller(
                        "lockgate_event", [each for each in observers.values() if each is not plugin]
                    )
                    for name, plugin in observers.items()
                }
            return self._contributions["lockgate_event"]

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
        """Refuse a plugin that decides only about queries of Spark: reads from Python would be open."""
        if hasattr(plugin, "lockgate_authorize_sql") and not hasattr(plugin, "lockgate_authorize"):
            raise PluginError(
                f"plugin {name!r} from {origin} implements lockgate_authorize_sql without "
                "lockgate_authorize, which decides about all but queries of Spark: implement both",
                name,
            )

    def _check_marks(self, plugin: object, name: str, origin: str) -> None:
        """Refuse an unmarked function with the name of a hook, which pluggy would silently ignore."""
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


def _check_names(what: str, names: Iterable[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for plugin, name in names:
        if name in owners:
            raise PluginError(
                f"plugin {plugin!r} and plugin {owners[name]!r} both add {what} {name!r}: "
                f"leave one out by {DISABLE_VARIABLE}={plugin}",
                plugin,
            )
        owners[name] = plugin
