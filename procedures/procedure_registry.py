"""The registry: finds procedures, binds arguments to parameters, and runs them, for all three ways to
call.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    InputError,
    LockgateError,
    PluginError,
    ProcedureError,
    ProcedureNotFoundError,
    TableNotFoundError,
    nearest,
)
from lockgate.framework.access import Action, Target
from lockgate.framework.io import named_errors
from lockgate.framework.plugins import (
    ProcedureCalled,
    authorize,
    current_principal,
    folded_procedure_name,
    observed_confs,
    plugins,
    publish,
)
from lockgate.procedures.argument_types import value_type
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext, ProcedureResult

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog

# The names of Iceberg and Delta for procedures that have another name here.
_ELSEWHERE = {
    "rewrite_data_files": "compact",
    "rewrite_manifests": "compact",
    "optimize": "compact",
    "rollback_to_snapshot": "rollback",
    "restore": "rollback",
    "vacuum": "expire_snapshots",
    "migrate": "migrate_table",
    "snapshot": "migrate_table",
}


def names() -> list[str]:
    """Return the names of all procedures, sorted."""
    return sorted(plugins().procedures())


@checked_arguments
def find(name: str) -> Procedure:
    """Return the procedure called `name`, in snake_case or camelCase; ProcedureNotFoundError otherwise."""
    procedures = plugins().procedures()
    wanted = name.strip("`")
    for candidate in procedures.values():
        if wanted.lower() in (candidate.name.lower(), folded_procedure_name(candidate.name)):
            return check(candidate)
    here = _ELSEWHERE.get(wanted.lower().removeprefix("sys.").removeprefix("system."))
    hint = f"; here it is called {here!r}" if here in procedures else nearest(wanted, procedures)
    raise ProcedureNotFoundError(f"there is no procedure {name!r}{hint}")


@checked_arguments
def check(procedure: Procedure) -> Procedure:
    """Return the procedure if its declaration is sound; PluginError otherwise."""
    try:
        for parameter in procedure.parameters:
            kind = value_type(parameter.type)
            if not parameter.required:
                kind.check(parameter.default)
        for _, ddl in procedure.result:
            value_type(ddl)
        _check_names(procedure)
    except (LockgateError, AttributeError, TypeError) as error:
        raise PluginError(
            f"procedure {procedure.name!r} is declared wrongly: {error}", procedure.name
        ) from error
    return procedure


def _check_names(procedure: Procedure) -> None:
    spellings = [name for each in procedure.parameters for name in {each.name, each.alias}]
    twice = sorted({name for name in spellings if spellings.count(name) > 1})
    if twice:
        raise InputError(f"two parameters are called {twice[0]!r}")
    if not procedure.result:
        raise InputError("result has no columns: return counts of what was done")
    optional = False
    for parameter in procedure.parameters:
        if parameter.required and optional:
            raise InputError(f"required parameter {parameter.name!r} follows one with a default")
        optional = optional or not parameter.required


@checked_arguments
def bind(procedure: Procedure, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter: positional arguments first, then named ones, then defaults.

    Raises `InputError` that names the procedure and the argument which is unknown, given twice, missing or of
    the wrong type.
    """
    given: dict[str, Any] = {}
    if len(positional) > len(procedure.parameters):
        raise InputError(
            f"{procedure.name} takes {len(procedure.parameters)} arguments, {len(positional)} were given: "
            f"{signature(procedure)}"
        )
    for parameter, value in zip(procedure.parameters, positional, strict=False):
        given[parameter.name] = value
    by_name = {name: each for each in procedure.parameters for name in (each.alias, each.name)}
    for name, value in named.items():
        if name not in by_name:
            names = [each.name for each in procedure.parameters]
            raise InputError(f"{procedure.name} has no parameter {name!r}{nearest(name, names)}")
        if value is None:
            continue
        parameter = by_name[name]
        if given.get(parameter.name) is not None:
            raise InputError(f"{procedure.name}: {parameter.name!r} is given twice")
        given[parameter.name] = value
    return {each.name: _value(procedure, each, given.get(each.name)) for each in procedure.parameters}


def _value(procedure: Procedure, parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.required:
            raise InputError(
                f"{procedure.name} needs the argument {parameter.name!r} ({parameter.doc or parameter.type})"
            )
        return parameter.default
    try:
        return parameter.value_type.check(value)
    except (InputError, ValueError) as error:
        raise InputError(f"{procedure.name}: argument {parameter.name!r}: {error}") from None


@checked_arguments
@named_errors
def call(context: ProcedureContext, name: str, /, *positional: Any, **named: Any) -> ProcedureResult:
    """Run the procedure `name` and return its rows.

    Errors of the procedure pass through unchanged; those of a full or closed disk are `StorageError`.
    """
    procedure = find(name)
    arguments = bind(procedure, positional, named)
    if not procedure.asks_itself:
        authorize(Action.CALL, Target("procedure", procedure.name))
    table = arguments.get("table")
    if procedure.right is not None and isinstance(table, str):
        context.require(procedure.right, table)
    if procedure.needs_all_rows and plugins().decides_access():
        _require_all_rows(context, procedure, arguments)
    rows = _observed(procedure, context, arguments)
    width = len(procedure.result)
    for row in rows:
        if len(row) != width:
            raise ProcedureError(
                f"{procedure.name} returned a row of {len(row)} values for {width} columns: {row!r}"
            )
    return ProcedureResult(tuple(column for column, _ in procedure.result), tuple(map(tuple, rows)))


def _require_all_rows(context: ProcedureContext, procedure: Procedure, arguments: Mapping[str, Any]) -> None:
    """Check that the caller sees all rows and values of the tables that a call is about."""
    names = [
        arguments[each.name]
        for each in procedure.parameters
        if (each.name == "table" or each.name.endswith("_table")) and isinstance(arguments[each.name], str)
    ]
    catalog = context.catalog
    for name in names or [
        f"{database}.{table}"
        for database in catalog.list_namespaces()
        for table in catalog.list_tables(database)
    ]:
        # What is no table of the warehouse, as a target that is to be made, hides nothing.
        with contextlib.suppress(InputError, TableNotFoundError):
            context.require_all_rows(name)


def _observed(
    procedure: Procedure, context: ProcedureContext, arguments: Mapping[str, Any]
) -> Iterable[Sequence[Any]]:
    """Call the procedure, and publish an event with its outcome."""
    started = time.monotonic()
    user = current_principal().user
    confs, description = observed_confs(), _description(context)
    error: str | None = None
    try:
        return procedure.call(context, **arguments)
    except SystemExit as raised:
        error = type(raised).__name__
        raise ProcedureError(
            f"{procedure.name} tried to end the process (exit code {raised.code!r}): let it raise errors"
        ) from raised
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        table = arguments.get("table")
        publish(
            ProcedureCalled(
                procedure=procedure.name,
                table=table if isinstance(table, str) else None,
                warehouse=_warehouse(context),
                catalog=context.catalog,
                user=user,
                description=description,
                confs=confs,
                arguments=tuple(sorted(name for name, value in arguments.items() if value is not None)),
                dry_run=arguments.get("dry_run") is True,
                seconds=time.monotonic() - started,
                error=error,
            )
        )


def _description(context: ProcedureContext) -> str | None:
    """Return the description that the caller gave the Spark job, if any."""
    if context.spark is None:
        return None
    found = context.spark.sparkContext.getLocalProperty("spark.job.description")
    return None if found is None else str(found)


def _warehouse(context: ProcedureContext) -> str | None:
    """Return the address of the warehouse; None for a call that was given none."""
    catalog: Catalog | None = context.catalog
    return None if catalog is None else catalog.file_system.uri(catalog.warehouse).rstrip("/")


@checked_arguments
def signature(procedure: Procedure) -> str:
    """Return `name(table STRING, dry_run BOOLEAN DEFAULT false)`."""
    parts = []
    for parameter in procedure.parameters:
        default = "" if parameter.required else f" DEFAULT {parameter.value_type.to_sql(parameter.default)}"
        parts.append(f"{parameter.name} {parameter.value_type.ddl}{default}")
    return f"{procedure.name}({', '.join(parts)})"
