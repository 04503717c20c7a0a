"""The lake: its tables, what is loaded into them, and the change of planes in the middle of the year."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import lockgate
from flights.data import FlightsData
from lockgate import Lake
from lockgate.keys import create_key_file

KEY = "fleet"
# An airline's list of planes is public; this example treats their makers and models as secret.
SECRET = f"'orc.encrypt'='{KEY}:manufacturer,model', 'orc.mask'='nullify:manufacturer;sha256:model'"
REFITTED, RETIRED = 100, 10

PLANES = ("manufacturer", "model", "engines", "seats")
AIRPORTS = ("name", "lat", "lon", "tzone")
WEATHER = ("temp", "wind_speed", "precip", "visib")
SNAPSHOTS = ("planes_snapshot", "airports_snapshot", "weather_snapshot")

_FLIGHT_COLUMNS = """flight_id BIGINT, year INT, month INT, day INT, dep_time INT, sched_dep_time INT,
  dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
  origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP"""
_TABLES = {
    "planes": f"""(tailnum STRING NOT NULL, year INT, type STRING, manufacturer STRING, model STRING,
  engines INT, seats INT, speed INT, engine STRING)
TBLPROPERTIES ('primary-key'='tailnum', 'bucket'='4', {SECRET})""",
    "airlines": """(carrier STRING NOT NULL, name STRING)
TBLPROPERTIES ('primary-key'='carrier', 'bucket'='1')""",
    "weather": """(origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE,
  humid DOUBLE, wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE,
  visib DOUBLE, time_hour TIMESTAMP)""",
    "enriched": f"""({_FLIGHT_COLUMNS},
  manufacturer STRING, model STRING, engines INT, seats INT, planes_snapshot BIGINT,
  name STRING, lat DOUBLE, lon DOUBLE, tzone STRING, airports_snapshot BIGINT,
  temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE, weather_snapshot BIGINT)
PARTITIONED BY (month) TBLPROPERTIES ({SECRET})""",
}


def open_lake(folder: Path, *, master: str, heap: str = "1g") -> Lake:
    """Make a key file and a Spark session with the catalog `lake` in `folder`."""
    keys = folder / "keys.json"
    if not keys.exists():
        create_key_file(keys, [KEY])
    conf = {
        "spark.driver.memory": heap,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": (folder / "spark-tables").as_uri(),
        "spark.ui.enabled": "false",
        # Two users share this session's JVM, as behind a server.
        "spark.lockgate.acts-for-others": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    return lockgate.connect(
        folder / "lake", keys=f"file:{keys}", master=master, conf=conf, app_name="flights"
    )


def make_tables(lake: Lake, data: FlightsData) -> None:
    """Create the tables and load planes, airlines and, one commit a quarter, weather."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.flights")
    for name, definition in _TABLES.items():
        lake.sql(f"CREATE TABLE lake.flights.{name} {definition}")
    append(lake, "planes", data.planes)
    append(lake, "airlines", data.airlines)
    for first in (1, 4, 7, 10):
        months = pc.and_(
            pc.greater_equal(data.weather["month"], first), pc.less(data.weather["month"], first + 3)
        )
        append(lake, "weather", data.weather.filter(months))


def append(lake: Lake, table: str, rows: pa.Table) -> None:
    """Append Arrow rows to a table of the lake, through Spark."""
    lake.spark.createDataFrame(rows).coalesce(1).writeTo(f"lake.flights.{table}").append()


def make_plain_airports(lake: Lake, data: FlightsData) -> str:
    """Save the airports as plain ORC in Spark's own catalog, as a team may have had them for years."""
    name = "spark_catalog.default.airports_orc"
    lake.spark.createDataFrame(data.airports).coalesce(1).write.format("orc").saveAsTable(name)
    return name


def busy_planes(data: FlightsData, month: int) -> list[str]:
    """The known planes that fly most from `month` on, the busiest first: those in whom a change shows."""
    later = data.flights.filter(pc.greater_equal(data.flights["month"], month))
    known = later.filter(pc.is_in(later["tailnum"], data.planes["tailnum"]))
    counts = known.group_by("tailnum").aggregate([("tailnum", "count")])
    names = counts.sort_by([("tailnum_count", "descending"), ("tailnum", "ascending")])["tailnum"]
    return names.to_pylist()


def refit(lake: Lake, tailnums: Sequence[str], model: str, seats: int) -> None:
    """Give planes a new model, a column that is encrypted, and another number of seats."""
    lake.sql(
        f"UPDATE lake.flights.planes SET model = '{model}', seats = {seats} "
        f"WHERE tailnum IN ({_quoted(tailnums)})"
    )


def retire(lake: Lake, tailnums: Sequence[str]) -> None:
    """Delete planes."""
    lake.sql(f"DELETE FROM lake.flights.planes WHERE tailnum IN ({_quoted(tailnums)})")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
