"""The texts of TPC-H's and TPC-DS's queries, and what creates the tables that they are about.

TPC-DS's are those of DuckDB's extension, with its types of columns (`tests/fixtures/tpcds.json.gz`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from tpch.queries import QUERIES

_TPCDS = Path(__file__).resolve().parents[1] / "fixtures" / "tpcds.json.gz"
_NAMES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def tpch() -> list[str]:
    """Return the 22 queries of TPC-H, on tables by their plain names."""
    names = {name: name for name in _NAMES}
    return [Template(text).substitute(names, fraction="0.0001") for text in QUERIES.values()]


def tpcds() -> list[str]:
    """Return the 99 queries of TPC-DS."""
    return [str(each).rstrip("; \n") for each in _content()["queries"]]


def tpcds_tables() -> Mapping[str, str]:
    """Return the columns of TPC-DS's tables in SQL, by the tables' names."""
    return {
        name: ", ".join(columns).replace("VARCHAR", "STRING")
        for name, columns in _content()["tables"].items()
    }


def _content() -> Any:
    return json.loads(gzip.decompress(_TPCDS.read_bytes()))
