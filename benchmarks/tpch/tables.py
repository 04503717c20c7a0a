"""The tables of TPC-H: generated as Parquet, written as tables of every kind, plain or encrypted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from tpch.queries import QUERIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate import Lake

KEYS = ("pii", "other")
"""The master keys that the encrypted tables need."""


@dataclass(frozen=True)
class Layout:
    """How a table is laid out, and which of its columns are encrypted under which key.

    With `rewritten` all rows are written twice, the first time with a null in that column: files overlap.
    """

    encrypt: str = ""
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    rewritten: str = ""


TABLES: Mapping[str, Layout] = {
    "region": Layout(),
    "nation": Layout("pii:n_comment"),
    "supplier": Layout(
        "pii:s_name,s_address,s_phone;other:s_acctbal",
        options={"primary-key": "s_suppkey", "bucket": "1"},
        rewritten="s_comment",
    ),
    "customer": Layout(
        "pii:c_name,c_address,c_phone;other:c_acctbal",
        partitions=("c_mktsegment",),
        options={"primary-key": "c_mktsegment,c_custkey", "bucket": "1"},
        rewritten="c_nationkey",
    ),
    "part": Layout("other:p_retailprice"),
    "partsupp": Layout(
        "other:ps_supplycost",
        options={"primary-key": "ps_partkey,ps_suppkey", "bucket": "2"},
        rewritten="ps_availqty",
    ),
    "orders": Layout(
        "pii:o_clerk,o_comment;other:o_totalprice",
        partitions=("o_orderstatus",),
        options={"bucket": "2", "bucket-key": "o_orderkey"},
    ),
    "lineitem": Layout(
        "pii:l_comment;other:l_extendedprice,l_discount,l_tax",
        options={"bucket": "4", "bucket-key": "l_orderkey"},
    ),
}


def generate(folder: Path, scale: float) -> None:
    """Write the tables as Parquet into `folder`, by tpcgen-cli."""
    program = Path(sys.executable).with_name("tpcgen-cli")
    if not program.is_file():
        raise SystemExit("tpcgen-cli is missing: pip install tpcgen-cli (it is in the group dev)")
    subprocess.run(
        [program, "tpch", "parquet", "-s", f"{scale:g}", "-o", folder], check=True, capture_output=True
    )


def load(lake: Lake, source: Path, database: str, *, encrypted: bool) -> dict[str, str]:
    """Write the Parquet files in `source` into tables of `database`; return full names by short ones."""
    names = {}
    for name, layout in TABLES.items():
        names[name] = f"lake.{database}.{name}"
        rows = lake.spark.read.parquet(str(source / f"{name}.parquet"))
        lake.sql(_create(names[name], rows, layout, encrypted=encrypted))
        if layout.rewritten:
            _without(rows, layout.rewritten).writeTo(names[name]).append()
        rows.writeTo(names[name]).append()
    return names


def _without(rows: DataFrame, column: str) -> DataFrame:
    kept = [f"NULL AS {name}" if name == column else name for name in rows.columns]
    return rows.selectExpr(*kept)


def _create(name: str, rows: DataFrame, layout: Layout, *, encrypted: bool) -> str:
    options = dict(layout.options)
    if encrypted and layout.encrypt:
        options["orc.encrypt"] = layout.encrypt
    columns = ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in rows.schema)
    partitions = f"PARTITIONED BY ({', '.join(layout.partitions)})" if layout.partitions else ""
    properties = ", ".join(f"'{key}'='{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) {partitions}" + (
        f" TBLPROPERTIES ({properties})" if properties else ""
    )


def query(number: int, names: Mapping[str, str], scale: float) -> str:
    """The text of a query over the tables `names`."""
    return Template(QUERIES[number]).substitute(names, fraction=f"{0.0001 / scale:.10f}")
