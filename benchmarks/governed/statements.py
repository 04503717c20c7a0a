"""What it costs to plan a statement: under policies, and where there are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness import emit, interleaved, note

from governed.world import LIMITED, OPEN, Limits, World
from lockgate import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BENCH = "governance"
EXTENSIONS = "spark.sql.extensions"
# A round plans the statement several times, so that one pause of the JVM does not decide.
OF_A_ROUND = 10
# Java compiles what is new for some hundred statements.
WARM_UP = 20
# Plans that run no job before they are whole.
AS_A_WHOLE = {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"}
QUERY = """SELECT p.name, p.ssn, sum(o.amount) AS amount FROM {people} p JOIN {orders} o ON p.id = o.person
           WHERE p.dept = 'x' AND o.day > 3 GROUP BY p.name, p.ssn"""
HIDING = {
    "lake.b.people": Limits("region <> 'z'", ("ssn", "email")),
    "lake.b.orders": Limits("region <> 'z'", ("card", "note")),
}


def make_tables(lake: Lake) -> None:
    """Make the two tables of the query."""
    lake.sql(
        "CREATE TABLE lake.b.people AS SELECT id, concat('n', id) AS name, 's' AS ssn, 'e' AS email,"
        " 'x' AS dept, 'r' AS region FROM range(100)"
    )
    lake.sql(
        "CREATE TABLE lake.b.orders AS SELECT id AS person, id % 9 AS day, id AS amount, 'c' AS card,"
        " 'n' AS note, 'r' AS region FROM range(1000)"
    )


def plans(lake: Lake, world: World, rounds: int) -> None:
    """Print the milliseconds that policies add to planning a query of two tables."""
    text = QUERY.format(people="lake.b.people", orders="lake.b.orders")
    functions = {
        "off": _planning(lake.spark, text),
        "open": _planning(world.sessions[OPEN], text),
        "limited": _planning(world.sessions[LIMITED], text),
    }
    times = world.times(functions, rounds, warm_up=WARM_UP)
    # Of the quickest rounds: the work of others on the machine only adds.
    each = {name: 1000 * min(took.wall for took in spent) / OF_A_ROUND for name, spent in times.items()}
    processor = {
        name: 1000 * median(took.processor for took in spent) / OF_A_ROUND for name, spent in times.items()
    }
    note(
        "processor time of a plan, median of rounds: "
        + ", ".join(f"{k} {v:.1f} ms" for k, v in processor.items())
    )
    baseline = f"without policies: {each['off']:.1f} ms"
    for name, metric in (("limited", "governed_statement_ms"), ("open", "governed_open_statement_ms")):
        emit(BENCH, metric, each[name] - each["off"], "ms", baseline)


def without_policies(lake: Lake, folder: Path, rounds: int) -> None:
    """Print what planning takes in a session with Lockgate's rules and no policies, next to plain Spark."""
    plain = _plain_session(lake)
    functions: dict[str, Callable[[], None]] = {}
    for name in ("people", "orders"):
        lake.spark.table(f"lake.b.{name}").write.parquet(str(folder / f"{name}.parquet"))
    for kind, session in (("lockgate", lake.spark), ("plain", plain)):
        for name in ("people", "orders"):
            session.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"{name}_files")
        functions[kind] = _planning(session, QUERY.format(people="people_files", orders="orders_files"))
    times = interleaved(functions, rounds, warm_up=WARM_UP)
    plain_seconds = min(times["plain"])
    baseline = f"a session without Lockgate: {1000 * plain_seconds / OF_A_ROUND:.1f} ms a plan"
    emit(BENCH, "ungoverned_ratio", min(times["lockgate"]) / plain_seconds, "ratio", baseline)


def _planning(session: SparkSession, text: str) -> Callable[[], None]:
    for name, value in AS_A_WHOLE.items():
        session.conf.set(name, value)

    def plan() -> None:
        for _ in range(OF_A_ROUND):
            # Plans below barriers are made when rows are wanted.
            session.sql(text)._jdf.queryExecution().toRdd()

    return plan


def _plain_session(lake: Lake) -> SparkSession:
    """Return a session of the same application that does not know Lockgate."""
    from pyspark.sql import SparkSession

    context = lake.spark.sparkContext
    conf, classes = context._jsc.sc().conf(), context._jvm.org.apache.spark.sql.classic.SparkSession
    before = conf.get(EXTENSIONS)
    conf.remove(EXTENSIONS)
    classes.clearActiveSession()
    classes.clearDefaultSession()
    try:
        made = classes.builder().getOrCreate()
        note("a session without Lockgate's rules")
        return SparkSession(context, made)
    finally:
        conf.set(EXTENSIONS, before)
        classes.setDefaultSession(lake.spark._jsparkSession)
        classes.setActiveSession(lake.spark._jsparkSession)
