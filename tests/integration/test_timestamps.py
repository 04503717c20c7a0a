"""Timestamps mean the same in every JVM zone, whether pyarrow, Spark or the connector wrote them."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from child_paths import python_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

JOB = Path(__file__).parent / "executor" / "timestamps_job.py"
SUPPORT = Path(__file__).parents[1] / "support"
ZONES = ["America/New_York", "UTC", "Asia/Shanghai"]
EPOCH = datetime.datetime(1970, 1, 1)


def _micros(text: str) -> int:
    return (datetime.datetime.fromisoformat(text) - EPOCH) // datetime.timedelta(microseconds=1)


# A wall clock and an instant, both in microseconds: the first as if UTC.
VALUES = [
    (_micros(wall), _micros(instant))
    for wall, instant in [
        ("2013-07-01 12:00:00.123456", "2013-07-01 12:00:00.123456"),
        ("2013-01-01 00:00:00", "2013-01-01 00:00:00"),
        ("2013-03-10 02:30:00", "2013-03-10 07:30:00"),  # New York has no such wall clock
        ("2013-11-03 01:30:00", "2013-11-03 05:30:00"),  # and this one twice
        ("1986-05-04 00:30:00", "1986-05-03 16:30:00"),  # no such wall clock in Shanghai
        ("1969-12-31 23:59:58.250000", "1969-12-31 23:59:58.250000"),
        ("1969-12-31 23:59:59", "1969-12-31 23:59:59"),
        ("1965-06-01 01:02:03.999999", "1965-06-01 01:02:03.999999"),
        ("1900-01-01 00:00:00.000001", "1901-01-01 00:00:00"),
        ("2100-01-01 00:00:00", "2100-01-01 00:00:00"),
    ]
]
# The second 01:30 of a night in New York: in Spark's own files another zone's JVM takes it for the first.
SECOND_TIME = (_micros("2013-11-03 01:30:00"), _micros("2013-11-03 06:30:00"))


def _text(micros: int) -> str:
    """Return a wall clock as Spark prints it."""
    text = (EPOCH + datetime.timedelta(microseconds=micros)).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def _run(zone: str, folder: Path, written: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(JOB), zone, str(folder), *written],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path(SUPPORT)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each zone's JVM read; files that Spark wrote natively are read again in the zones after it."""
    folder = tmp_path_factory.mktemp("zones")
    (folder / "values.json").write_text(json.dumps([*VALUES, SECOND_TIME]))
    results, written = {}, []
    for zone in ZONES:
        results[zone] = _run(zone, folder, written)
        written.append(str(folder / f"native-{zone.replace('/', '-')}"))
    return results


EXPECTED = [[i, _text(wall), instant] for i, (wall, instant) in enumerate([*VALUES, SECOND_TIME])]


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    """The JVM of all tests is in New York for one of them; the tests below start JVMs in their zones."""
    zones: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]  # the session is no remote one
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("America/New_York"))
    yield
    zones.setDefault(before)


def test_the_zone_of_a_jvm_moves_nothing(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], in_new_york: None
) -> None:
    name = table("zoned")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ntz TIMESTAMP_NTZ, ltz TIMESTAMP)")
    walls, instants = zip(*VALUES, SECOND_TIME, strict=True)
    stored = lake.catalog.load_table(name.removeprefix("lake."))
    stored.append(
        pa.table(
            {
                "id": pa.array(range(len(walls)), pa.int64()),
                "ntz": pa.array(walls, pa.timestamp("us")),
                "ltz": pa.array(instants, pa.timestamp("us", "UTC")),
            }
        )
    )
    spark.sql(f"INSERT INTO {name} SELECT id + 100, ntz, ltz FROM {name}")
    shown = spark.sql(f"SELECT id % 100, CAST(ntz AS STRING), unix_micros(ltz) FROM {name} ORDER BY id")
    assert [list(row) for row in shown.collect()] == EXPECTED * 2
    back = lake.catalog.load_table(name.removeprefix("lake.")).read().sort_by("id")
    for column, expected in (("ntz", walls), ("ltz", instants)):
        assert back[column].cast(pa.int64()).to_pylist() == [*expected] * 2


@pytest.mark.cluster
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("writer", ["own", "pyarrow's"])
def test_timestamps_are_read_as_they_were_written(
    found: dict[str, dict[str, Any]], zone: str, writer: str
) -> None:
    assert found[zone][writer] == EXPECTED


@pytest.mark.cluster
@pytest.mark.parametrize("zone", ZONES)
def test_pyarrow_reads_what_the_connector_writes(found: dict[str, dict[str, Any]], zone: str) -> None:
    expected = [[i, wall, instant] for i, (wall, instant) in enumerate([*VALUES, SECOND_TIME])]
    assert found[zone]["own in pyarrow"] == expected


@pytest.mark.cluster
@pytest.mark.parametrize("zone", ZONES)
def test_statistics_do_not_know_the_zone(found: dict[str, dict[str, Any]], zone: str) -> None:
    for column, position in [("ntz", 0), ("ltz", 1)]:
        values = [value[position] for value in VALUES]
        statistics = found[zone]["stats"][column]
        assert (statistics["min"], statistics["max"], statistics["nulls"]) == (min(values), max(values), 0)


@pytest.mark.cluster
@pytest.mark.parametrize("zone", ZONES)
def test_files_that_spark_wrote_itself_keep_their_instants(
    found: dict[str, dict[str, Any]], zone: str
) -> None:
    own = f"Spark's from native-{zone.replace('/', '-')}"
    names = [name for name in found[zone] if name.startswith("Spark's")]
    assert own in names
    for name in names:
        rows = found[zone][name]
        assert rows[: len(VALUES)] == EXPECTED[: len(VALUES)]
        if name == own:
            assert rows == EXPECTED
