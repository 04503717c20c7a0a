"""Statements without a lookup join: parser and analyzer treat them as without Lockgate."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import ParseException
from tpc_texts import tpcds, tpcds_tables, tpch

from lockgate.framework.spark.bridge.connector_jars import jar
from lockgate.framework.spark.session.session import EXTENSIONS_CLASS, EXTENSIONS_CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = "spark.sql.debug.maxToStringFields"
OTHERS = (
    "SELECT 'FOR SYSTEM_TIME AS OF o.t', `SYSTEM_TIME` FROM t -- FOR SYSTEM_TIME AS OF o.t",
    "SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF '2024-01-01' AS d ON a.k = d.k",
    "SELECT * FROM b FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 1 HOUR",
    "SELECT * FROM b SYSTEM_TIME AS OF CAST('2024-01-01' AS TIMESTAMP)",
    "SELECT /*+ BROADCAST(b), REPARTITION(3) */ system_time AS of FROM a JOIN b ON a.k = b.k",
    "CREATE VIEW v AS SELECT '\U0001f600' AS system_time FROM t VERSION AS OF 3",
    "INSERT INTO t SELECT * FROM range(3) /* FOR SYSTEM_TIME AS OF o.t */",
)


def test_the_parser_reads_them_as_sparks_own_does(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    ours = session.sessionState().sqlParser()
    theirs = jvm.org.apache.spark.sql.execution.SparkSqlParser()
    texts = [*tpch(), *tpcds(), *OTHERS]
    assert len(texts) == 22 + 99 + len(OTHERS)
    with whole_plans(spark):
        found = {text: (outcome(ours, text), outcome(theirs, text)) for text in texts}
    assert [text for text, (mine, sparks) in found.items() if mine != sparks] == []
    # DuckDB's spelling is not Spark's everywhere.
    assert sum("PARSE_SYNTAX_ERROR" in mine for mine, _ in found.values()) < 10


@contextmanager
def whole_plans(spark: SparkSession) -> Iterator[None]:
    """Let plans show all of their columns."""
    spark.conf.set(SHOWN, "100000")
    yield
    spark.conf.unset(SHOWN)


def outcome(parser: Any, text: str) -> str:
    """Return the plan of a text without the numbers by which Spark tells columns apart, or the error."""
    try:
        return re.sub(r"#\d+", "#", parser.parsePlan(text).toString())
    except ParseException as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT FROM WHERE FOR SYSTEM_TIME AS OF",
        "SELECT * FROM t FOR SYSTEM_TIME AS OF a.b + INTERVAL 1 DAY",
        "SELECT * FROM t FOR SYSTEM_TIME AS OF 'unfinished",
        "SELECT /*+ LOOKUP('table'='d') */ 1 FROM t",
    ],
)
def test_its_errors_are_sparks(spark: SparkSession, text: str) -> None:
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession

    def error(parser: Any) -> str:
        with pytest.raises(Exception, match=r".") as found:
            parser.parsePlan(text)
        return str(found.value)

    theirs = error(jvm.org.apache.spark.sql.execution.SparkSqlParser())
    assert error(session.sessionState().sqlParser()) == theirs


REWRITTEN = {
    "SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS d ON a.k = d.k": "'PROCTIME(a.t)",
    "SELECT '\U0001f600', * FROM a JOIN b for System_Time as of `a b`.`t'` d ON a.k = d.k": "'PROCTIME(0x",
    "SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF timestamp d ON a.k = d.k": "'PROCTIME(timestamp)",
    "SELECT * FROM a JOIN b /*+ OPTIONS('k'='v') */ FOR SYSTEM_TIME AS OF PROCTIME() d ON a.k = d.k": "[k=v]",
}


@pytest.mark.parametrize("text", REWRITTEN)
def test_the_clause_is_read_again_as_it_is_stored(spark: SparkSession, text: str) -> None:
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    parser = session.sessionState().sqlParser()
    plan = parser.parsePlan(text)
    assert REWRITTEN[text] in plan.toString()
    view = parser.parsePlan(f"CREATE VIEW v AS {text}")
    stored = next(each for each in _parts(view) if "PROCTIME" in each and each.startswith("SELECT"))
    # Spark's own parser reads it too, and ours makes no other text of it.
    assert jvm.org.apache.spark.sql.execution.SparkSqlParser().parsePlan(stored).equals(plan)
    assert parser.parsePlan(stored).equals(plan)


def _parts(plan: Any) -> list[str]:
    parts = [plan.productElement(number) for number in range(plan.productArity())]
    return [str(each.get() if "Some" in str(each)[:4] else each) for each in parts]


ANALYZED = """
import json, sys
from pyspark.sql import SparkSession

asked = json.load(sys.stdin)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in asked["confs"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
for name, columns in asked["tables"].items():
    spark.createDataFrame([], columns).createOrReplaceTempView(name)
for text in asked["texts"]:
    try:
        plan = spark.sql(text)._jdf.queryExecution().analyzed().toString()
    except Exception as error:
        plan = type(error).__name__ + str(error)
    print(json.dumps(plan))
spark.stop()
"""


@pytest.mark.cluster
def test_the_analyzer_leaves_them_as_they_are(tmp_path: Path) -> None:
    """In two processes, of which one has Lockgate's rules."""

    def analyzed(confs: dict[str, str]) -> list[str]:
        asked = {
            "confs": {
                **confs,
                SHOWN: "100000",
                "spark.log.level": "OFF",
                "spark.sql.warehouse.dir": str(tmp_path),
            },
            "tables": dict(tpcds_tables()),
            "texts": tpcds(),
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ANALYZED)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=True,
            timeout=500,
        )
        return [re.sub(r"#\d+", "#", line) for line in done.stdout.splitlines() if line.startswith('"')]

    plain = analyzed({})
    assert len(plain) == 99
    # The few that Spark does not read fail in the same words.
    assert sum("Exception" in each[:40] for each in plain) < 10
    assert analyzed({"spark.jars": str(jar()), EXTENSIONS_CONF: EXTENSIONS_CLASS}) == plain
