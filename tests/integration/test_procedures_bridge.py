"""CALL: what Spark and the bridge do with arguments, rows and errors of any procedure."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lockgate.errors import ProcedureError
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.procedures import Int, Procedure, TypedProcedure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

TYPES = {
    "truth": ("BOOLEAN", "true"),
    "small": ("INT", "7"),
    "large": ("BIGINT", "9007199254740993"),
    "ratio": ("DOUBLE", "0.1D"),
    "day": ("DATE", "DATE'2024-02-29'"),
    "moment": ("TIMESTAMP", "TIMESTAMP'2024-02-29 12:34:56.123456'"),
    "names": ("ARRAY<STRING>", "array('a', NULL)"),
    "pairs": ("MAP<STRING, STRING>", "map('k', 'v')"),
}


@dataclass(frozen=True)
class Values:
    text: Annotated[str, "any text"]
    truth: bool | None = None
    small: Int | None = None
    large: int | None = None
    ratio: float | None = None
    day: datetime.date | None = None
    moment: datetime.datetime | None = None
    names: list[str] | None = None
    pairs: dict[str, str] | None = None


@dataclass(frozen=True)
class SameValues(Values):
    jobs: int = 0


class Echo(TypedProcedure[Values, SameValues]):
    """Return its arguments, and count by a Spark job."""

    name = "test_echo"

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def run(self, context: Any, arguments: Values) -> list[SameValues]:
        self.calls.append(vars(arguments))
        if arguments.text == "fail":
            raise ProcedureError("it was asked to fail")
        if arguments.text == "break":
            raise RuntimeError("a mistake in the procedure")
        return [SameValues(**vars(arguments), jobs=context.spark.range(5).count())]


@dataclass(frozen=True)
class Place:
    place: str
    fails: bool = False


@dataclass(frozen=True)
class AddedRow:
    id: Int


class AddRow(TypedProcedure[Place, AddedRow]):
    """Commit to a table that its arguments do not name as one."""

    name = "test_add_row"

    def run(self, context: Any, arguments: Place) -> list[AddedRow]:
        rows = pa.table({"id": pa.array([7], pa.int32())})
        context.catalog.load_table(arguments.place.replace("/", ".")).append(rows)
        if arguments.fails:
            raise ProcedureError("after the commit")
        return [AddedRow(7)]


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()

    class Plugin:
        @hookimpl
        def lockgate_procedures(self) -> list[Procedure]:
            return [made, AddRow()]

    plugins().register(Plugin(), "test-echo")
    yield made
    plugins().unregister("test-echo")


def test_every_type_keeps_its_value(lake: Lake, echo: Echo) -> None:
    given = ", ".join(f"{name} => {literal}" for name, (_, literal) in TYPES.items())
    row = lake.sql(f"CALL lake.sys.test_echo(text => concat('a', 'ü'), {given})").collect()[0].asDict()
    expected = lake.sql("SELECT " + ", ".join(f"{value} AS {name}" for name, (_, value) in TYPES.items()))
    assert row == {"text": "aü", **expected.collect()[0].asDict(), "jobs": 5}
    arguments = echo.calls[-1]
    assert arguments["large"] == 9007199254740993
    assert arguments["day"] == datetime.date(2024, 2, 29)
    assert arguments["moment"].replace(tzinfo=None) == datetime.datetime(2024, 2, 29, 12, 34, 56, 123456)
    assert arguments["ratio"] == 0.1
    assert arguments["pairs"] == {"k": "v"}


def test_positional_and_default_arguments(lake: Lake, echo: Echo) -> None:
    row = lake.sql("CALL lake.sys.test_echo('x', true)").collect()[0]
    assert (row.text, row.truth, row.small, row.names) == ("x", True, None, None)


def test_from_python(lake: Lake, echo: Echo) -> None:
    row = lake.call("test_echo", text="it's", small=3, names=["a", "b"], day=datetime.date(2024, 1, 1))[0]
    assert (row.text, row.small, row.names, row.day) == (
        "it's",
        3,
        ["a", "b"],
        datetime.date(2024, 1, 1),
    )
    with pytest.raises(ProcedureError, match="plain word"):
        lake.call("test_echo('x'); DROP TABLE", text="x")


def test_a_call_runs_once(spark: SparkSession, echo: Echo) -> None:
    frame = spark.sql("CALL lake.sys.test_echo('once')")
    frame.collect()
    frame.count()
    assert len(echo.calls) == 1
    spark.sql("EXPLAIN CALL lake.sys.test_echo('never')").collect()
    assert len(echo.calls) == 1


def test_other_ways_to_name_it(spark: SparkSession, echo: Echo) -> None:
    assert spark.sql("CALL lake.test_echo('x')").count() == 1
    session = spark.newSession()
    session.sql("USE lake.sys")
    assert session.sql("CALL test_echo('x')").count() == 1


def test_a_call_within_a_call(lake: Lake, echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Echo.call

    def nested(self: Echo, context: Any, **arguments: Any) -> list[tuple[Any, ...]]:
        depth = arguments["small"]
        if depth:
            context.spark.sql(f"CALL lake.sys.test_echo(text => 'x', small => {depth - 1})").collect()
        return plain(self, context, **arguments)

    monkeypatch.setattr(Echo, "call", nested)
    lake.sql("CALL lake.sys.test_echo(text => 'x', small => 4)").collect()
    assert len(echo.calls) == 5


def test_calls_from_many_threads(spark: SparkSession, echo: Echo) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def call(i: int) -> str:
        return str(spark.sql(f"CALL lake.sys.test_echo('t{i}')").collect()[0].text)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(12))) == [f"t{i}" for i in range(12)]


def test_show_and_describe(spark: SparkSession, echo: Echo) -> None:
    shown = [row.procedure_name for row in spark.sql("SHOW PROCEDURES IN lake.sys").collect()]
    assert "test_echo" in shown
    described = "\n".join(row[0] for row in spark.sql("DESCRIBE PROCEDURE lake.sys.test_echo").collect())
    assert "Return its arguments, and count by a Spark job." in described
    assert "test_echo(text STRING" in described
    assert "jobs BIGINT" in described


ERRORS = [
    ("CALL lake.sys.test_ecko('x')", "did you mean 'test_echo'"),
    ("CALL lake.sys.test_echo()", "text"),
    ("CALL lake.sys.test_echo('x', nosuch => 1)", "nosuch"),
    ("CALL lake.sys.test_echo('x', small => array(1))", "small|ARRAY"),
    ("CALL lake.sys.test_echo('fail')", "it was asked to fail"),
    ("CALL lake.sys.test_echo('break')", "RuntimeError: a mistake in the procedure"),
]


@pytest.mark.parametrize(("statement", "message"), ERRORS)
def test_errors_of_procedures_show_no_stack_traces(
    spark: SparkSession, echo: Echo, statement: str, message: str
) -> None:
    with pytest.raises(AnalysisException, match=message) as raised:
        spark.sql(statement).collect()
    text = str(raised.value)
    assert "Traceback" not in text
    assert "at io.lockgate" not in text


def test_a_procedure_has_help() -> None:
    assert inspect.getdoc(Echo)


def test_cached_plans_show_what_a_procedure_of_a_plugin_committed(
    lake: Lake, spark: SparkSession, echo: Echo, database: str
) -> None:
    name = f"lake.{database}.t"
    spark.sql(f"CREATE TABLE {name} (id INT)")
    spark.sql(f"CACHE TABLE {name}")
    frame = spark.table(name).cache()
    files = spark.table(f"{name}.files").cache()
    try:
        assert (frame.count(), files.count(), spark.table(name).count()) == (0, 0, 0)
        spark.sql(f"CALL lake.sys.test_add_row('{database}/t')")
        assert [row.id for row in spark.sql(f"SELECT id FROM {name}").collect()] == [7]
        assert (frame.count(), files.count()) == (1, 1)
        with pytest.raises(AnalysisException, match="after the commit"):
            spark.sql(f"CALL lake.sys.test_add_row('{database}/t', true)")
        assert (frame.count(), files.count(), spark.table(name).count()) == (2, 2, 2)
    finally:
        spark.catalog.clearCache()
