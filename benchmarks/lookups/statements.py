"""What lookup joins in SQL cost statements without one: TPC-H and TPC-DS read by both parsers."""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import pyspark
from harness import emit, note
from pyspark.errors import ParseException
from tpch.queries import QUERIES

if TYPE_CHECKING:
    from lockgate import Lake

_TPCDS = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "tpcds.json.gz"
_TIMES = Path(__file__).with_name("ParseTimes.java")
# A round takes 0.06 s. The JVM compiles the parser for as long as the first hundred.
_ROUNDS_OF_REPETITION, _WARM_UP_ROUNDS = 20, 150


def parse_overhead(lake: Lake, repetitions: int) -> None:
    """Print the time of the session's parser, and of a second one of Spark's, over that of Spark's own.

    The second figure is the noise of the first.
    """
    jvm: Any = lake.spark._jvm
    session: Any = lake.spark._jsparkSession
    plain = jvm.org.apache.spark.sql.execution.SparkSqlParser
    texts = [each for each in _texts() if _is_readable(plain(), each)]
    note(f"parsing: {len(texts)} queries, without those that Spark's own parser cannot read")
    parsers = jvm.java.util.ArrayList()
    for each in (session.sessionState().sqlParser(), plain(), plain()):
        parsers.add(each)
    arguments = jvm.java.util.ArrayList()
    for argument in (parsers, _list(jvm, texts), repetitions * _ROUNDS_OF_REPETITION, _WARM_UP_ROUNDS):
        arguments.add(argument)
    ours, first, second = _timer(lake).apply(arguments)
    emit(
        "lookup", "parse_overhead_ratio", 2 * ours / (first + second), "ratio", "Spark's own; the goal: 1.02"
    )
    emit("lookup", "parse_overhead_noise", second / first, "ratio", "Spark's own twice")


def _texts() -> list[str]:
    tables = {"fraction": "0.0001"}
    texts = [Template(text).safe_substitute(tables).replace("$", "") for text in QUERIES.values()]
    return texts + [
        text.rstrip("; \n") for text in json.loads(gzip.decompress(_TPCDS.read_bytes()))["queries"]
    ]


def _is_readable(parser: Any, text: str) -> bool:
    try:
        parser.parsePlan(text)
    except ParseException:
        return False  # TPC-DS is in DuckDB's spelling, which is not Spark's everywhere
    return True


def _list(jvm: Any, texts: list[str]) -> Any:
    found = jvm.java.util.ArrayList()
    for text in texts:
        found.add(text)
    return found


def _timer(lake: Lake) -> Any:
    """Return the compiled class of `ParseTimes.java`, loaded into the driver's JVM."""
    jvm: Any = lake.spark._jvm
    gateway: Any = lake.spark.sparkContext._gateway
    folder = tempfile.mkdtemp(prefix="lockgate-parse-times-")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(["javac", "-cp", str(jars), "-d", folder, str(_TIMES)], check=True)
    addresses = gateway.new_array(jvm.java.net.URL, 1)
    addresses[0] = jvm.java.io.File(folder).toURI().toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader = jvm.java.net.URLClassLoader(addresses, parent)
    kind = loader.loadClass("ParseTimes")
    return kind.getDeclaredConstructors()[0].newInstance(gateway.new_array(jvm.java.lang.Object, 0))
