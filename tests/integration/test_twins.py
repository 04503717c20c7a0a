"""What the connector computes as Python does: it runs the vectors that Python's own tests run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.types import parse_type, to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parents[1] / "fixtures"


def vectors(folder: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((FIXTURES / folder).glob("*.json"))]


def with_spark_types(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns, or cases, of a vector, each with its type as Spark spells it."""
    return [{**each, "spark": to_spark_type(parse_type(each["type"]))} for each in columns]


def load(path: Path) -> dict[str, Any]:
    vector: dict[str, Any] = json.loads(path.read_text())
    return {**vector, "columns": with_spark_types(vector["columns"])}


def lookup_twins(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.io.lockgate.spark.lookup.LookupTwins


@pytest.mark.parametrize("path", vectors("row_codec"))
def test_cached_rows(spark: SparkSession, path: Path) -> None:
    vector = load(path)
    decoded = json.loads(lookup_twins(spark).decode(json.dumps(vector)))
    assert repr(decoded) == repr(vector["rows"])  # repr tells the two zeros apart


@pytest.mark.parametrize("path", vectors("key_codec"))
def test_keys_of_lookups(spark: SparkSession, path: Path) -> None:
    vector = load(path)
    assert json.loads(lookup_twins(spark).keys(json.dumps(vector))) == vector["keys"]


def test_folders_of_partitions(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "partition_folders" / "folders.json").read_text())
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.orc.Conformance
    folders = json.loads(conformance.partitionFolders(json.dumps(with_spark_types(cases))))
    assert folders == [case["folder"] for case in cases]
