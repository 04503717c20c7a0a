"""Procedures: maintenance by SQL `CALL`, by `lake.call` and by the command line, open to plugins."""

from lockgate.procedures.arguments import Where, parse_where
from lockgate.procedures.procedure import REQUIRED, Parameter, Procedure, ProcedureContext, ProcedureResult
from lockgate.procedures.procedure_registry import bind, call, check, find, names, signature
from lockgate.procedures.typed_procedure import DryRun, Int, TableName, TypedProcedure

__all__ = [
    "REQUIRED",
    "DryRun",
    "Int",
    "Parameter",
    "Procedure",
    "ProcedureContext",
    "ProcedureResult",
    "TableName",
    "TypedProcedure",
    "Where",
    "bind",
    "call",
    "check",
    "find",
    "names",
    "parse_where",
    "signature",
]
