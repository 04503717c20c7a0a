"""Procedures: maintenance by SQL `CALL`, by `lake.call` and by the command line, open to plugins."""

from lockgate.procedures.arguments import WHERE, parse_where
from lockgate.procedures.procedure import REQUIRED, Parameter, Procedure, ProcedureContext, ProcedureResult
from lockgate.procedures.procedure_registry import bind, call, check, find, names, signature

__all__ = [
    "REQUIRED",
    "WHERE",
    "Parameter",
    "Procedure",
    "ProcedureContext",
    "ProcedureResult",
    "bind",
    "call",
    "check",
    "find",
    "names",
    "parse_where",
    "signature",
]
