"""What lookup joins in SQL cost statements without one: TPC-H and TPC-DS read by both parsers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from harness import emit, interleaved, note, ratio
from pyspark.errors import ParseException
from tpch.queries import QUERIES

if TYPE_CHECKING:
    from lockgate import Lake

_TPCDS = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "tpcds.json.gz"


def parse_overhead(lake: Lake, repetitions: int) -> None:
    """Time parsing of TPC-H and TPC-DS by the session's parser, next to Spark's own."""
    jvm: Any = lake.spark._jvm
    session: Any = lake.spark._jsparkSession
    parsers = {
        "ours": session.sessionState().sqlParser(),
        "spark": jvm.org.apache.spark.sql.execution.SparkSqlParser(),
    }
    tables = {"fraction": "0.0001"}
    texts = [Template(text).safe_substitute(tables).replace("$", "") for text in QUERIES.values()]
    texts += [text.rstrip("; \n") for text in json.loads(gzip.decompress(_TPCDS.read_bytes()))["queries"]]

    texts = [text for text in texts if _is_readable(parsers["spark"], text)]
    note(f"parsing: {len(texts)} queries, without those that Spark's own parser cannot read")

    def read_by(parser: Any) -> None:
        for text in texts:
            parser.parsePlan(text)

    functions = {name: lambda parser=parser: read_by(parser) for name, parser in parsers.items()}
    seconds = interleaved(functions, max(repetitions, 9), warm_up=4)
    emit("lookup", "parse_overhead_ratio", ratio(seconds["ours"], seconds["spark"]), "ratio", 1.0)


def _is_readable(parser: Any, text: str) -> bool:
    try:
        parser.parsePlan(text)
    except ParseException:
        return False  # TPC-DS is in DuckDB's spelling, which is not Spark's everywhere
    return True
