"""Procedures: maintenance by SQL `CALL`, by `lake.call` and by the command line, open to plugins."""

from lockgate.procedures.procedure import REQUIRED, Parameter, Procedure, ProcedureContext, ProcedureResult
from lockgate.procedures.procedure_registry import call, find, names, signature

__all__ = [
    "REQUIRED",
    "Parameter",
    "Procedure",
    "ProcedureContext",
    "ProcedureResult",
    "call",
    "find",
    "names",
    "signature",
]
