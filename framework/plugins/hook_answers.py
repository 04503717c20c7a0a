"""Checks of hook answers: each returns the answer in one form, or raises TypeError or ValueError.

The manager adds the plugin's name to the message.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lockgate.framework.options import KNOWN, Option
from lockgate.framework.plugins.contracts import (
    AuditSink,
    CommitParticipant,
    FileCollector,
    FilePruner,
    IndexKind,
    LineageSink,
    SystemTable,
    WarehouseTable,
)

T = TypeVar("T")

# Methods that were renamed since the last release: the old name still works, with a warning.
_FORMER_NAMES = {"keep_files": "left", "lookup_keys": "asked"}

# The pruning steps of every scan.
STEPS = ("manifests", "partitions", "buckets", "keys", "statistics", "limit", "order")
_RESERVED_STEPS = frozenset({*STEPS, "snapshot"})
_STEP_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
PAIMON_TABLES = frozenset({"all_table_options", "catalog_options", "partitions", "tables"})
_APACHE_MASKS = frozenset({"nullify", "redact", "sha256"})


def named_as_today(value: T, name: str) -> T:
    """Return `value`, whose method also has its current name; warn if it only had the former one.

    Raises TypeError if the object takes no attribute.
    """
    former = _FORMER_NAMES[name]
    if not isinstance(value, type) and hasattr(value, former) and not hasattr(value, name):
        kind = type(value).__name__
        warnings.warn(f"rename {kind}.{former} to {name}", DeprecationWarning, stacklevel=2)
        try:
            object.__setattr__(value, name, getattr(value, former))
        except AttributeError:
            raise TypeError(f"{value!r} lacks {name}(), the new name of {former}()") from None
    return value


def folded_procedure_name(name: str) -> str:
    """Return a key that is equal for spellings of one procedure name: case and `_` do not count."""
    return name.replace("_", "").lower()


def by_procedure_name(answer: object) -> dict[str, Any]:
    """Return procedures by their names."""
    if not isinstance(answer, list | tuple):
        raise TypeError(f"expected a list of procedures, not {type(answer).__name__}")
    procedures: dict[str, Any] = {}
    name_keys = set()
    for procedure in answer:
        name = getattr(procedure, "name", None)
        is_instance = not isinstance(procedure, type) and callable(getattr(procedure, "call", None))
        if not isinstance(name, str) or not is_instance:
            raise TypeError(f"{procedure!r} is not an instance of lockgate.plugins.Procedure")
        if folded_procedure_name(name) in name_keys:
            raise ValueError(f"procedure {name!r} is listed twice")
        name_keys.add(folded_procedure_name(name))
        procedures[name] = procedure
    return procedures


def _mapping(answer: object) -> dict[str, Any]:
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        raise TypeError(f"expected a mapping of names, not {type(answer).__name__}")
    return dict(answer)


def callables(answer: object) -> dict[str, Any]:
    """Return callables by their names."""
    values = _mapping(answer)
    for name, value in values.items():
        if not callable(value):
            raise TypeError(f"{name!r} is mapped to {type(value).__name__}, which cannot be called")
    return values


def masks(answer: object) -> dict[str, Any]:
    """Return factories of masks by their names."""
    values = callables(answer)
    conflicts = sorted(_APACHE_MASKS & set(values))
    if conflicts:
        raise ValueError(f"{conflicts[0]!r} is a mask of Apache ORC; give yours another name")
    return values


def _mapped(protocol: Any, members: str) -> Callable[[object], dict[str, Any]]:
    """Return a check for mappings to instances of a protocol; `members` names its members."""

    def check(answer: object) -> dict[str, Any]:
        values = _mapping(answer)
        for name, value in values.items():
            if isinstance(value, type) or not isinstance(value, protocol):
                raise TypeError(f"{name!r} is mapped to {value!r}, which lacks {members}")
        return values

    return check


system_tables: Callable[[object], dict[str, Any]] = _mapped(SystemTable, "schema() or rows()")
_warehouse_tables: Callable[[object], dict[str, Any]] = _mapped(WarehouseTable, "columns or batches()")
_index_kinds: Callable[[object], dict[str, Any]] = _mapped(IndexKind, "accepts(), keys() or lookup_keys()")
audit_sinks: Callable[[object], dict[str, Any]] = _mapped(AuditSink, "write()")
lineage_sinks: Callable[[object], dict[str, Any]] = _mapped(LineageSink, "write()")


def index_kinds(answer: object) -> dict[str, Any]:
    """Return kinds of indexes by their names; a name with other characters than a word's is refused."""
    values = _index_kinds(
        {name: named_as_today(kind, "lookup_keys") for name, kind in _mapping(answer).items()}
    )
    for name in values:
        if not _STEP_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid name of a kind: use up to 40 lower-case letters, digits and _"
            )
    return values


def warehouse_tables(answer: object) -> dict[str, Any]:
    """Return system tables of warehouses by their names; a name of Paimon's tables is refused."""
    values = _warehouse_tables(answer)
    conflicts = sorted(PAIMON_TABLES & set(values))
    if conflicts:
        raise ValueError(f"sys.{conflicts[0]} is a table of every warehouse: give yours another name")
    return values


SCOPES = ("table", "catalog", "read", "session")


def options(answer: object) -> dict[str, Option[Any]]:
    """Return options by the text "scope key"."""
    by_scope_and_key: dict[str, Option[Any]] = {}
    for scope, scope_options in _mapping(answer).items():
        if scope not in SCOPES:
            raise ValueError(f"{scope!r} is not a scope of options: {', '.join(SCOPES)} are")
        for option in scope_options:
            _check_option(scope, option)
            if by_scope_and_key.setdefault(f"{scope} {option.key}", option) is not option:
                raise ValueError(f"option {option.key!r} is declared twice")
    return by_scope_and_key


def _check_option(scope: str, option: object) -> None:
    if not isinstance(option, Option):
        raise TypeError(f"{option!r} is not an instance of lockgate.plugins.Option")
    if "." not in option.key or option.key.startswith("fs.") or not option.doc:
        raise ValueError(f"option {option.key!r} needs a key such as 'plugin.option', and a description")
    if scope == "table" and option.key in KNOWN:
        raise ValueError(f"{option.key!r} is an option of every table: give yours another key")


def _listed(protocol: Any, members: str) -> Callable[[object], list[Any]]:
    """Return a check for lists of instances of a protocol; `members` names its members."""

    def check(answer: object) -> list[Any]:
        if not isinstance(answer, list | tuple):
            raise TypeError(f"expected a list, not {type(answer).__name__}")
        for each in answer:
            if isinstance(each, type) or not isinstance(each, protocol):
                raise TypeError(f"{each!r} lacks {members}")
        return list(answer)

    return check


participants: Callable[[object], list[CommitParticipant]] = _listed(
    CommitParticipant, "prepare(), committed() or aborted()"
)
collectors: Callable[[object], list[FileCollector]] = _listed(FileCollector, "name, columns or begin()")
_pruners: Callable[[object], list[FilePruner]] = _listed(FilePruner, "name or keeps()")


def pruners(answer: object) -> list[FilePruner]:
    """Return pruners of files; a name that is no word or that of a built-in step is refused."""
    values = [named_as_today(each, "keep_files") for each in _pruners(answer)]
    for each in values:
        if not isinstance(each.name, str) or not _STEP_NAME.fullmatch(each.name):
            raise ValueError(
                f"{each.name!r} is not a valid name of a pruner: use up to 40 lower-case letters, digits "
                "and _"
            )
        if each.name in _RESERVED_STEPS:
            raise ValueError(f"{each.name!r} is a step of every scan: give the pruner another name")
    return values


def wrong_type(kind: type, answer: object) -> TypeError:
    """Return the error for an answer of another type."""
    return TypeError(f"expected {kind.__name__}, not {type(answer).__name__}")


def one_line(error: BaseException) -> str:
    """Return an error's message without line breaks."""
    return " ".join(str(error).split())
