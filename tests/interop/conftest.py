"""Two referees that read what is written here and write what is read here: pypaimon and Paimon's own Java.

pypaimon pins an older pyarrow, so it lives in an environment of its own (`./dev test --interop` makes it) and
is asked by subprocess; rows travel as Arrow files. Paimon's Java core comes by Maven; see `paimon_java`.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from both_engines import Both
from paimon_java import PaimonJava, PaimonTable, missing_tool
from ranger_java import class_path_in

from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog

if TYPE_CHECKING:
    from lockgate import Lake

SCRIPT = Path(__file__).with_name("referee.py")


class Pypaimon:
    """A process with pypaimon, which takes seconds to import."""

    def __init__(self, python: str, scratch: Path) -> None:
        self._log = (scratch / "log").open("w+b")
        self._process = subprocess.Popen(
            [python, str(SCRIPT), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )

    def run(self, *arguments: str) -> None:
        """Do one thing; AssertionError has pypaimon's own traceback."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            raise AssertionError(f"pypaimon's process ended: {self._log.read()[-3000:].decode()}")
        problem = json.loads(answer)
        assert not problem, problem[-3000:]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()


class Referee:
    """pypaimon on the tables of a warehouse."""

    def __init__(self, pypaimon: Pypaimon, warehouse: str, scratch: Path) -> None:
        self._run = pypaimon.run
        self._warehouse = warehouse
        self._scratch = scratch

    def read(self, table: str) -> pa.Table:
        """Return the rows of a table."""
        out = self._scratch / "read.arrow"
        self._run("read", self._warehouse, table, str(out))
        return _load(out)

    def read_tag(self, table: str, tag: str) -> pa.Table:
        """Return the rows of a table at a tag."""
        out = self._scratch / "read.arrow"
        self._run("read_tag", self._warehouse, table, tag, str(out))
        return _load(out)

    def create_tag(self, table: str, tag: str, snapshot_id: int) -> None:
        """Tag a snapshot, to be kept for two days."""
        self._run("create_tag", self._warehouse, table, tag, str(snapshot_id))

    def alter(self, table: str, *changes: tuple[str, ...]) -> None:
        """Change a table's schema; see `alter` of the script."""
        self._run("alter", self._warehouse, table, json.dumps(changes))

    def refer(self, table: str, method: str, *arguments: str) -> None:
        """Call a method of a table's branches, or of the table."""
        self._run("refer", self._warehouse, table, method, *arguments)

    def write(self, table: str, rows: pa.Table, *, overwrite: bool = False) -> None:
        """Append rows to a table, or replace its rows."""
        self._run("write", self._warehouse, table, self._store(rows), "overwrite" if overwrite else "")

    def create(
        self,
        table: str,
        schema: pa.Schema,
        *,
        primary_keys: tuple[str, ...] = (),
        partition_keys: tuple[str, ...] = (),
        options: dict[str, str] | None = None,
    ) -> None:
        """Create a table."""
        arguments = {
            "primary_keys": list(primary_keys),
            "partition_keys": list(partition_keys),
            "options": {"file.format": "orc", **(options or {})},
        }
        self._run("create", self._warehouse, table, self._store(schema.empty_table()), json.dumps(arguments))

    def buckets(self, rows: pa.Table, count: int) -> dict[str, list[int]]:
        """Return the bucket of each row by each of its columns."""
        out = self._scratch / "buckets.arrow"
        self._run("buckets", self._store(rows), str(out), str(count))
        return _load(out).to_pydict()  # type: ignore[no-any-return]  # pyarrow has no types

    def _store(self, rows: pa.Table) -> str:
        path = self._scratch / "rows.arrow"
        with pa.ipc.new_file(path, rows.schema) as file:
            file.write_table(rows)
        return str(path)


def _load(path: Path) -> pa.Table:
    with pa.ipc.open_file(path) as file:
        return file.read_all()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog


@pytest.fixture(scope="session")
def pypaimon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pypaimon]:
    """The process that all tests share."""
    python = os.environ.get("LOCKGATE_INTEROP_PYTHON")
    if not python:
        pytest.skip("pypaimon's Python is not known; run ./dev test --interop")
    process = Pypaimon(python, tmp_path_factory.mktemp("pypaimon"))
    yield process
    process.close()


@pytest.fixture
def referee(pypaimon: Pypaimon, catalog: Catalog, tmp_path: Path) -> Referee:
    return Referee(pypaimon, catalog.warehouse, tmp_path)


FLAT_TYPES: dict[str, pa.DataType] = {
    "f_bool": pa.bool_(),
    "f_tiny": pa.int8(),
    "f_small": pa.int16(),
    "f_int": pa.int32(),
    "f_big": pa.int64(),
    "f_float": pa.float32(),
    "f_double": pa.float64(),
    "f_decimal": pa.decimal128(10, 2),
    "f_wide_decimal": pa.decimal128(38, 10),
    "f_string": pa.string(),
    "f_bytes": pa.binary(),
    "f_date": pa.date32(),
    "f_clock": pa.timestamp("us"),
    "f_instant": pa.timestamp("us", "UTC"),
}


@pytest.fixture
def flat_rows() -> Callable[..., pa.Table]:
    """Make rows of every flat type; column `id` first, every fifth row without values."""

    def make(start: int, count: int) -> pa.Table:
        def value(name: str, n: int) -> object:
            # Before 1970 in whole seconds: fractions there are refused by the writer (and broken in others).
            year = 1960 + n % 90
            micros = n * 997 % 10**6 if year >= 1970 else 0
            moment = datetime.datetime(year, 1 + n % 12, 1 + n % 28, n % 24, n % 60, n % 60, micros)
            made = {
                "f_bool": n % 2 == 0,
                "f_tiny": n % 256 - 128,
                "f_small": n * 7 - 300,
                "f_int": n * 100_003 - 5,
                "f_big": n * 10**14 - 77,
                "f_float": n / 4,
                "f_double": -n / 3,
                "f_decimal": Decimal(n * 101 - 50) / 100,
                "f_wide_decimal": Decimal(10**20 * (n % 7) - n) / 10**10,
                "f_string": f"row {n} ü" * (n % 3),
                "f_bytes": bytes([n % 256]) * (n % 12),
                "f_date": moment.date(),
                "f_clock": moment,
                "f_instant": moment.replace(tzinfo=datetime.UTC),
            }
            return None if n % 5 == 4 else made[name]

        numbers = range(start, start + count)
        columns = {
            name: pa.array([value(name, n) for n in numbers], kind) for name, kind in FLAT_TYPES.items()
        }
        return pa.table({"id": pa.array(numbers, pa.int64()), **columns})

    return make


@pytest.fixture
def same_rows() -> Callable[[pa.Table, pa.Table], None]:
    """Check that two tables hold the same rows, in whatever order."""

    def check(left: pa.Table, right: pa.Table) -> None:
        names = left.column_names
        assert sorted(names) == sorted(right.column_names)
        keys = [(name, "ascending") for name in names if name in ("id", "dt")]
        right = right.select(names).cast(pa.schema([pa.field(f.name, f.type) for f in left.schema]))
        left = left.cast(right.schema).sort_by(keys)
        assert left.to_pylist() == right.sort_by(keys).to_pylist()

    return check


@pytest.fixture(scope="session")
def paimon_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaimonJava]:
    """A JVM with Paimon's own core."""
    tool = missing_tool()
    if tool is not None:
        pytest.skip(f"needs {tool}")
    try:
        java = PaimonJava(tmp_path_factory.mktemp("paimon-java"))
    except OSError as error:
        pytest.skip(str(error))
    yield java
    java.close()


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A session of Spark with the catalog `lake`."""
    import lockgate

    folder = tmp_path_factory.mktemp("interop-lake")
    create_key_file(str(folder / "keys.json"), ["pii"])
    conf = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    keys = f"file:{folder / 'keys.json'}"
    lake = lockgate.connect(str(folder / "warehouse"), keys=keys, master="local[2]", conf=conf)
    yield lake
    lake.spark.stop()


@pytest.fixture
def both(lake: Lake, paimon_java: PaimonJava) -> Both:
    """A table that does not exist yet, under both engines."""
    database = f"db_{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(database)
    return Both(lake, f"{database}.t", PaimonTable(paimon_java, lake.catalog.warehouse, f"{database}.t"))


@pytest.fixture(scope="session")
def ranger_classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of Ranger's own classes and of what asks them."""
    return class_path_in(tmp_path_factory.mktemp("ranger"))
