"""Lockgate's own procedures as a plugin, and the connector's operations to list and call any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from lockgate.errors import ProcedureNotFoundError
from lockgate.framework.plugins import BridgeContext, BridgeOperation, hookimpl
from lockgate.framework.spark import NamespaceRequest, RowsJson, TableRequest
from lockgate.procedures import procedure_registry
from lockgate.procedures.argument_types import value_type
from lockgate.procedures.builtin.instances import builtin_procedures
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext
from lockgate.procedures.procedure_messages import CallRequest, ParameterSpec, ProcedureList, ProcedureSpec

NAMESPACE = "sys"


@hookimpl
def lockgate_procedures() -> Sequence[Procedure]:
    """Return the procedures that come with Lockgate."""
    return builtin_procedures()


@hookimpl
def lockgate_bridge_operations() -> Mapping[str, BridgeOperation]:
    """Return the operations behind SHOW PROCEDURES and CALL."""
    return {
        "procedure.list": list_procedures,
        "procedure.load": load_procedure,
        "procedure.call": call_procedure,
    }


def list_procedures(context: BridgeContext, request: NamespaceRequest) -> ProcedureList:
    """Answer SHOW PROCEDURES: all procedures are in the namespace `sys`."""
    if request["namespace"] not in ([], [NAMESPACE]):
        return {"procedures": []}
    found = [procedure_registry.find(name) for name in procedure_registry.names()]
    return {
        "procedures": [
            {"namespace": [NAMESPACE], "name": each.name, "description": each.description} for each in found
        ]
    }


def load_procedure(context: BridgeContext, request: TableRequest) -> ProcedureSpec:
    """Describe one procedure to Spark's analyzer.

    Spark knows no aliases: a camelCase name is a further parameter. Both it and the original default to
    NULL, which means "not given". Missing arguments are found, and defaults are filled in, when the call
    arrives.
    """
    procedure = _find(request)
    parameters = [_parameter(each) for each in procedure.parameters]
    parameters += [_alias(each) for each in procedure.parameters if each.alias != each.name]
    for before, each in pairwise(parameters):
        # Spark wants none required after an optional one; what is missing is found when the call arrives.
        if before["default"] is not None and each["default"] is None:
            each["default"] = "NULL"
    return {
        "name": procedure.name,
        "description": procedure.description,
        "signature": procedure_registry.signature(procedure),
        "parameters": parameters,
        "result": [{"name": name, "type": value_type(ddl).ddl} for name, ddl in procedure.result],
    }


def call_procedure(context: BridgeContext, request: CallRequest) -> RowsJson:
    """Run one procedure and return its rows."""
    procedure = _find(request)
    types = {name: each.value_type for each in procedure.parameters for name in (each.name, each.alias)}
    arguments = {
        name: types[name].from_json(json) if name in types else json
        for name, json in request["arguments"].items()
    }
    # Two sessions may call different warehouses alike; the handle then has a number behind the name.
    name = request["catalog"].partition("#")[0]
    running = ProcedureContext(context.catalog(request["catalog"]), name, context.spark)
    result = procedure_registry.call(running, procedure.name, **arguments)
    columns = [value_type(ddl) for _, ddl in procedure.result]
    rows = [[kind.to_json(value) for kind, value in zip(columns, row, strict=True)] for row in result]
    return {"rows": rows}


def _find(request: TableRequest) -> Procedure:
    namespace = request["namespace"]
    if namespace not in ([], [NAMESPACE]):
        shown = ".".join([*namespace, request["name"]])
        raise ProcedureNotFoundError(
            f"there is no procedure {shown!r}: procedures are called as {NAMESPACE}.{request['name']}"
        )
    return procedure_registry.find(request["name"])


def _parameter(parameter: Parameter) -> ParameterSpec:
    default = None if parameter.required else parameter.value_type.to_sql(parameter.default)
    if parameter.alias != parameter.name:
        default = "NULL"
    return {
        "name": parameter.name,
        "type": parameter.value_type.ddl,
        "default": default,
        "comment": parameter.doc,
    }


def _alias(parameter: Parameter) -> ParameterSpec:
    return {
        "name": parameter.alias,
        "type": parameter.value_type.ddl,
        "default": "NULL",
        "comment": f"the same as {parameter.name}",
    }
