"""Folder names of partitions are those that Paimon gives."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import InputError, UnsafePathError, UnsupportedFormatError, UnsupportedTypeError
from lockgate.framework import types as t
from lockgate.framework.store import Catalog, DataFileMeta, Schema, Table
from lockgate.framework.store.ddl.schema_changes import RemoveOption, SetOption
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.framework.store.metadata.paths import (
    TablePaths,
    escape,
    java_float_text,
    partition_text,
    unescape,
)
from lockgate.framework.store.metadata.trust import ExternalRoots, check_file_names


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (t.STRING, "a b", "a b"),
        (t.INT, -5, "-5"),
        (t.BOOLEAN, True, "true"),
        (t.DATE, datetime.date(2024, 1, 1), "19723"),
        (t.decimal(5, 2), Decimal("1.5"), "1.50"),
        (t.timestamp(6), datetime.datetime(2024, 1, 1), "2024-01-01T00:00"),
        (t.timestamp(6), datetime.datetime(2024, 1, 1, 1, 2, 3), "2024-01-01T01:02:03"),
        (t.timestamp(6), datetime.datetime(2024, 1, 1, 1, 2, 3, 4000), "2024-01-01T01:02:03.004"),
        (t.timestamp(6), datetime.datetime(2024, 1, 1, 1, 2, 3, 4), "2024-01-01T01:02:03.000004"),
        (t.time(3), datetime.time(0, 0, 1), "1000"),
        (t.DOUBLE, 1.0, "1.0"),
        (t.FLOAT, 0.1, "0.1"),
    ],
)
def test_partition_values_as_folder_names(kind: t.DataType, value: Any, text: str) -> None:
    assert partition_text(kind, value) == text


def test_dates_in_the_newer_style() -> None:
    assert partition_text(t.DATE, datetime.date(2024, 1, 1), legacy=False) == "2024-01-01"
    with pytest.raises(UnsupportedFormatError):
        partition_text(t.timestamp_ltz(6), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), legacy=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e7, "1.0E7"),
        (1.25e-5, "1.25E-5"),
        (0.001, "0.001"),
        (100.0, "100.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (-0.0, "-0.0"),
        (2e23, "2.0E23"),
        (5e-324, "4.9E-324"),
        (-2.3184525677263325e17, "-2.3184525677263325E17"),
    ],
)
def test_doubles_as_java_prints_them(value: float, text: str) -> None:
    assert java_float_text(value, single=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.4028234663852886e38, "3.4028235E38"),
        (149749084717056.0, "1.4974908E14"),
        (0.10000000149011612, "0.1"),
    ],
)
def test_floats_as_java_prints_them(value: float, text: str) -> None:
    assert java_float_text(value, single=True) == text


@given(st.floats())
def test_what_java_prints_of_a_double_reads_back(value: float) -> None:
    read = float(java_float_text(value, single=False).replace("Infinity", "inf"))
    assert read == value or (read != read and value != value)


@given(st.floats(width=32))
def test_what_java_prints_of_a_float_reads_back(value: float) -> None:
    read = np.float32(java_float_text(value, single=True).replace("Infinity", "inf"))
    assert read == value or (read != read and value != value)


FOLDERS = Path(__file__).parents[3] / "fixtures" / "partition_folders" / "folders.json"


@pytest.mark.parametrize("case", json.loads(FOLDERS.read_text()), ids=lambda case: case["folder"][:40])
def test_folders_of_the_vectors(case: dict[str, Any]) -> None:
    kind = t.parse_type(case["type"])
    options = {
        "partition.legacy-name": str(case["legacy"]).lower(),
        "partition.default-name": case["default"],
    }
    fields = (t.DataField(0, case["name"], kind), t.DataField(1, "other", t.INT))
    schema = first_schema(Schema(fields, partition_keys=(case["name"],), options=options))
    value = t.value_from_json(kind, case["value"])
    assert TablePaths("/table", schema).partition_path([value]) == case["folder"]


def test_an_instant_has_no_folder_in_the_newer_style(
    catalog: Catalog, make_table: Callable[..., Table]
) -> None:
    columns = {"p": pa.timestamp("us", "UTC"), "other": pa.int64()}
    with pytest.raises(UnsupportedTypeError, match="time zone of the writer"):
        make_table(columns=columns, partition_keys=("p",), partition_legacy__name="false")
    make_table(name="u", columns=columns, partition_keys=("p",))
    with pytest.raises(UnsupportedTypeError, match="time zone of the writer"):
        catalog.alter_table("db.u", [SetOption("partition.legacy-name", "false")])


@pytest.mark.parametrize("option", ["partition.legacy-name", "partition.default-name"])
def test_names_of_folders_that_have_rows_stay(
    catalog: Catalog, make_table: Callable[..., Table], option: str
) -> None:
    make_table(columns={"p": pa.date32(), "other": pa.int64()}, partition_keys=("p",))
    table = catalog.alter_table("db.t", [SetOption(option, "false")])
    rows = pa.table({"p": pa.array([datetime.date(2024, 2, 29), None]), "other": [1, 2]})
    table.append(rows)
    for change in (SetOption(option, "true"), RemoveOption(option)):
        with pytest.raises(InputError, match="it decides how rows are stored"):
            catalog.alter_table("db.t", [change])
    assert table.read().sort_by("other") == rows


@given(st.text())
def test_escaping_is_reversible(name: str) -> None:
    assert unescape(escape(name)) == name
    assert "/" not in escape(name)


def test_escaped_characters() -> None:
    assert escape("a/b=c:%\n") == "a%2Fb%3Dc%3A%25%0A"
    assert escape("ä b-_.~") == "ä b-_.~"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\nb", None, 7, ["a"]])
def test_one_strange_name_among_many_is_refused(name: Any) -> None:
    check_file_names(["a.orc", "b.orc", "..."])
    with pytest.raises(UnsafePathError, match="a data file is named"):
        check_file_names(["a.orc", name, "b.orc"], "a data file")


def test_paths_of_a_table(make_table: Callable[..., Table], data_file: Callable[..., DataFileMeta]) -> None:
    columns = {"id": pa.int64(), "dt": pa.date32(), "s": pa.string()}
    table = make_table(columns=columns, partition_keys=("dt", "s"))
    paths = table.paths
    partition = (datetime.date(1970, 1, 2), None)
    file = data_file("data-1.orc", extra_files=("data-1.orc.index",))
    folder = f"{table.location}/dt=1/s=__DEFAULT_PARTITION__/bucket-0"
    assert paths.data_file(partition, 0, file) == f"{folder}/data-1.orc"
    assert paths.extra_files(partition, 0, file) == [f"{folder}/data-1.orc.index"]
    assert paths.partition_path((datetime.date(1970, 1, 2), " ")) == "dt=1/s=__DEFAULT_PARTITION__"
    outside = data_file("data-2.orc", external_path="/elsewhere/data-2.orc")
    with pytest.raises(UnsafePathError, match=r"below no root .*external-roots"):
        paths.data_file(partition, 0, outside)
    elsewhere = TablePaths(table.location, table.schema, external=ExternalRoots.parse("/elsewhere"))
    assert elsewhere.data_file(partition, 0, outside) == "/elsewhere/data-2.orc"
    many = [file, outside, data_file("data-3.orc")]
    assert elsewhere.data_files(partition, 0, many) == tuple(
        elsewhere.data_file(partition, 0, each) for each in many
    )
    assert paths.data_files(partition, 0, [file, many[2]]) == (f"{folder}/data-1.orc", f"{folder}/data-3.orc")
    with pytest.raises(UnsafePathError, match=r"below no root"):
        paths.data_files(partition, 0, many)
    assert make_table("plain").paths.bucket_path((), 3).endswith("/plain/bucket-3")
