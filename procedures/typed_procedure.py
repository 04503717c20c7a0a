"""Procedures declared by two dataclasses: one holds the arguments of a call, one a row of its result."""

from __future__ import annotations

import datetime
import types
import typing
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from lockgate.errors import InputError, ProcedureError, UnsupportedTypeError
from lockgate.procedures.procedure import REQUIRED, Parameter, Procedure, ProcedureContext

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True)
class SqlType:
    """A type in Spark's DDL, where a type of Python stands for several."""

    ddl: str


Int = Annotated[int, SqlType("INT")]
TableName = Annotated[str, "the table, `database.table`"]
DryRun = Annotated[bool, "only count"]

_DDL: Mapping[Any, str] = {
    str: "STRING",
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    datetime.date: "DATE",
    datetime.datetime: "TIMESTAMP",
}


@dataclass(frozen=True)
class ProcedureColumn:
    """A field of a dataclass as SQL sees it: `doc` is a sentence in Markdown."""

    name: str
    type: str
    nullable: bool
    doc: str


class TypedProcedure(Procedure, Generic[A, R]):
    """A procedure whose parameters and result columns are the fields of two frozen dataclasses.

    A field's annotation gives the type and, by `Annotated`, the sentence that explains it; a field without a
    sentence shares that of the field before it. `int` is BIGINT, and `Int` is INT. With `| None` a value may
    be NULL. A sentence may end in `(default: ...)` where the default is None. The first line of the class's
    docstring is the description.
    """

    columns: ClassVar[tuple[ProcedureColumn, ...]]
    _arguments: ClassVar[type[Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "description" not in vars(cls):
            cls.description = (cls.__doc__ or "").partition("\n")[0]
        for base in getattr(cls, "__orig_bases__", ()):
            if typing.get_origin(base) is TypedProcedure:
                cls._arguments, row = typing.get_args(base)
                defaults = {each.name: each.default for each in fields(cls._arguments)}
                cls.parameters = tuple(
                    Parameter(each.name, each.type, _default(each, defaults[each.name]), each.doc)
                    for each in _columns(cls._arguments)
                )
                cls.columns = tuple(_columns(row))
                cls.result = tuple((each.name, each.type) for each in cls.columns)

    @abstractmethod
    def run(self, context: ProcedureContext, arguments: A) -> Iterable[R]:
        """Do the work and return the rows of the result; every argument has been checked."""

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Run the procedure; ProcedureError if it returns NULL in a column that has none."""
        rows = [
            tuple(getattr(row, each.name) for each in self.columns)
            for row in self.run(context, self._arguments(**arguments))
        ]
        for row in rows:
            for value, column in zip(row, self.columns, strict=True):
                if value is None and not column.nullable:
                    raise ProcedureError(
                        f"{self.name} returned NULL in {column.name!r}: annotate the field with `| None`"
                    )
        return rows


def _columns(declaration: type[Any]) -> Iterator[ProcedureColumn]:
    hints, doc = typing.get_type_hints(declaration, include_extras=True), ""
    for each in fields(declaration):
        try:
            ddl, nullable, own = _type_of(hints[each.name])
        except KeyError:
            raise UnsupportedTypeError(
                f"{declaration.__name__}.{each.name}: a procedure cannot take or return {hints[each.name]}"
            ) from None
        doc = own or doc
        yield ProcedureColumn(each.name, ddl, nullable, doc)


def _type_of(hint: Any) -> tuple[str, bool, str]:
    """Return a field's type in DDL, whether it may be NULL, and its sentence."""
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind is Annotated:
        marks = inner[1:]
        ddl = next((each.ddl for each in marks if isinstance(each, SqlType)), None)
        inherited, nullable, doc = _type_of(inner[0])
        return ddl or inherited, nullable, next((each for each in marks if isinstance(each, str)), doc)
    if kind in (typing.Union, types.UnionType):
        (value,) = (each for each in inner if each is not types.NoneType)
        ddl, _, doc = _type_of(value)
        return ddl, True, doc
    if kind is list:
        return f"ARRAY<{_type_of(inner[0])[0]}>", False, ""
    if kind is dict:
        return f"MAP<STRING,{_type_of(inner[1])[0]}>", False, ""
    return _DDL[hint], False, ""


def _default(parameter: ProcedureColumn, default: Any) -> Any:
    if default is None and not parameter.nullable:
        raise InputError(f"parameter {parameter.name!r} is None by default: annotate it with `| None`")
    return REQUIRED if default is MISSING else default
