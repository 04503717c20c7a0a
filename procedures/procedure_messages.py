"""Messages of the bridge on procedures: SHOW PROCEDURES, DESCRIBE PROCEDURE and CALL."""

from __future__ import annotations

from typing import TypedDict

from lockgate.framework.spark import TableRequest, ValueJson


class ListedProcedure(TypedDict):
    """A line of SHOW PROCEDURES."""

    namespace: list[str]
    name: str
    description: str


class ProcedureList(TypedDict):
    """All procedures of a database."""

    procedures: list[ListedProcedure]


class ParameterSpec(TypedDict):
    """A parameter; `default` is SQL, null: it must be given."""

    name: str
    type: str
    default: str | None
    comment: str


class ResultColumn(TypedDict):
    """A column of the rows that a procedure returns."""

    name: str
    type: str


class ProcedureSpec(TypedDict):
    """A procedure as Spark's analyzer knows it."""

    name: str
    description: str
    signature: str
    parameters: list[ParameterSpec]
    result: list[ResultColumn]


class CallRequest(TableRequest):
    """A call, with the values of all parameters by name."""

    arguments: dict[str, ValueJson]
