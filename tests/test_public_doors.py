"""Public doors with hostile arguments: nothing leaves them but `LockgateError`, or the right answer.

A call that does not fit a signature is Python's TypeError, as for any function.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import enum
import inspect
import io
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from effort import sampled
from full_disk import largest_file

from lockgate.cli.main import main
from lockgate.errors import LockgateError
from lockgate.framework.keys import MemoryKeyProvider, create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureContext, call, procedure_registry

MODULES = tuple(
    f"lockgate{each}"
    for each in (
        *("", ".governance", ".keys", ".lineage", ".lookup", ".orc", ".plugins", ".procedures", ".pushdown"),
        ".tables",
    )
)
ANY: list[Any] = [
    *(None, True, -1, 0, 2**70, 1.5, math.nan, decimal.Decimal("NaN"), datetime.date.max, object(), object),
    *("", " ", "x" * 5000, "..", "../x", "a/b", "\0", "\u202e", "表.格", "a.b.c", "db.", "db.t$", "db.t$x"),
    *("db.t$branch_", "9" * 400, "-0", "'", "%s", "${env:HOME}", b"x", Path("..")),
    *([], {}, [""], ["\0"], ["id", 1], ("id", "id"), {"a": 1}, {1: 2}, {"": ""}, iter([1]), len),
]
# They start Spark, or wait: `tests/integration` calls these.
ELSEWHERE = {
    "configure",
    "connect",
    "attach",
    "lookup_join",
    "Lake",
    "wait_for",
    "open_lookup",
    "AdminPolicies",
}


class World:
    """A warehouse with an append table and a key table, a file of keys, and an ORC file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self.keys = create_key_file(folder / "keys.json", ["k"])
        self.make()

    def make(self) -> None:
        """Create the tables again, in a new warehouse."""
        self._number += 1
        self.catalog = Catalog(self._folder / f"w{self._number}")
        self.catalog.create_namespace("db")
        columns = pa.schema([("id", pa.int64()), ("p", pa.string())])
        self.rows: Table = self.catalog.create_table("db.t", Schema.from_arrow(columns, partition_keys=["p"]))
        self.rows.append(pa.table({"id": [1, 2], "p": ["a", "b"]}))
        self.rows.create_tag("one", 1)
        keyed = Schema.from_arrow(columns, primary_keys=["id"], options={"bucket": "1"})
        self.keyed: Table = self.catalog.create_table("db.k", keyed)
        self.keyed.append(pa.table({"id": [1, 2], "p": ["a", "b"]}))

    def repair(self) -> None:
        """Make what a call has dropped."""
        if not (self.catalog.table_exists("db.t") and self.catalog.table_exists("db.k")):
            self.make()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Call(NamedTuple):
    """One argument of a door."""

    owner: str
    name: str
    parameter: str
    number: int


RIGHT: dict[str, Any] = {
    "identifier": "db.t",
    "name": "one",
    "namespace": "db",
    "target": "db.t2",
    "tag": "one",
    "rows": pa.table({"id": [3], "p": ["c"]}),
    "schema": Schema.from_arrow(pa.schema([("i", pa.int32())])),
    "snapshot_id": 1,
    "changes": [],
    "after": 0,
    "upto": 1,
    "columns": ["id"],
    "aggregates": [],
    "data": pa.table({"id": [3], "p": ["c"]}),
}


def functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the doors: functions and classes of public modules, and methods of catalogs, tables and keys."""
    seen = set()
    for module in MODULES:
        for name in import_module(module).__all__:
            door = getattr(import_module(module), name)
            if name in ELSEWHERE | INNER or is_no_door(door) or door in seen:
                continue
            seen.add(door)
            yield module, name, door
    for owner, kind in (("catalog", Catalog), ("rows", Table), ("keyed", Table), ("keys", MemoryKeyProvider)):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield owner, name, method


# Of single values and parts of conditions, in the loops of readers: they check nothing.
INNER = {
    *("indexed_words", "parse_iso_date", "parse_iso_datetime", "plain", "rank_of", "required_words"),
    *("words", "words_of"),
    *("describe_field", "describe_literal", "field_type", "folded_text", "format_bytes", "negate"),
    *("necessary_condition", "shows"),
    *("date_of", "days_of", "micros_of", "millis_of_day", "one_nan", "partition_key", "time_of"),
    *("timestamp_of", "value_from_json", "value_to_json"),
}


def is_no_door(door: Any) -> bool:
    """Say whether a name is an error, an enumeration, a protocol or an alias of a type."""
    if not inspect.isclass(door):
        return not inspect.isfunction(door)
    return issubclass(door, BaseException | enum.Enum) or inspect.isabstract(door)


def parameters(door: Callable[..., Any]) -> list[inspect.Parameter]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(door).parameters.values()
    return [each for each in found if each.kind in named and each.name != "self"]


DOORS = {(owner, name): door for owner, name, door in functions()}
CALLS = [
    Call(*key, parameter.name, number)
    for key, door in DOORS.items()
    for parameter in parameters(door)
    for number in range(len(ANY))
]


def escaped(function: Callable[[], Any]) -> str | None:
    """Return the error that leaves a function and is none of Lockgate's."""
    try:
        answer = function()
        if isinstance(answer, Iterator):
            list(answer)
    except LockgateError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def test_python(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)  # so that `..` is a folder of this test
    found = []
    for each in sampled(CALLS, 500):
        door = DOORS[each.owner, each.name]
        owner = getattr(world, each.owner, None)
        needed = {one.name: RIGHT.get(one.name) for one in parameters(door) if one.default is one.empty}
        value = iter([1]) if isinstance(ANY[each.number], Iterator) else ANY[each.number]
        bound = door if owner is None else getattr(owner, each.name)
        error = escaped(partial(bound, **{**needed, each.parameter: value}))
        if error is not None:
            found.append(f"{each.owner}.{each.name}({each.parameter}={value!r:.40}): {error}")
        world.repair()
    assert found == []


TEXTS = [
    *(
        "",
        "x",
        "..",
        "\0",
        "表",
        "a=b",
        "id=1;id=2",
        "p=a",
        "db.t",
        "db.k",
        "db.nosuch",
        "db.t$branch_x",
        "1",
    ),
    *("-1", "9" * 400, "1 d", "9999999999 d", "a" * 3000, "*", "(", "1=1", "[", "{}", '{"a":', "/etc", "orc"),
    *("%", "'", "one", "id < 'x'", "NULL", "2026-13-45", "id, id", "../../x", "\ud800"),
]
OF_TYPES: dict[str, list[Any]] = {
    "STRING": TEXTS,
    "INT": [0, -1, 2**31 - 1, -(2**31), "5.5"],
    "BIGINT": [0, -1, 2**63 - 1, -(2**63)],
    "DOUBLE": [0.0, -1.0, math.nan, math.inf],
    "BOOLEAN": [True, False],
    "DATE": [datetime.date.min, datetime.date.max],
    "TIMESTAMP": [datetime.datetime.min, datetime.datetime.max, "0001-01-01", "9999-12-31 23:59:59"],
}
# It starts a server and waits for it to be stopped.
WAITING = {"query_service"}
PROCEDURES = [
    (name, parameter.name, value)
    for name in sorted({*procedure_registry.names()} - WAITING)
    for parameter in procedure_registry.find(name).parameters
    for value in (*OF_TYPES.get(parameter.type, [[], {}, ["x"], {"": ""}]), object())
]


def test_procedures(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    found = []
    for name, parameter, value in sampled(PROCEDURES, 60):
        needed = {
            each.name: "db.t" if "table" in each.name else "x" if each.type == "STRING" else 1
            for each in procedure_registry.find(name).parameters
            if each.required
        }
        context = ProcedureContext(world.catalog)
        error = escaped(partial(call, context, name, **{**needed, parameter: value}))
        if error is not None:
            found.append(f"{name}({parameter} => {value!r:.40}): {error}")
        world.repair()
    assert found == []


def run(arguments: list[str]) -> None:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),  # of wrong usage
    ):
        assert main(arguments) in (0, 1)


def command_lines(warehouse: str, text: str, out: str) -> list[list[str]]:
    call_of = ["call", "expire_snapshots", "--warehouse", warehouse]
    return [
        ["tables", "--warehouse", text],
        ["tables", "--warehouse", warehouse, text],
        ["tables", "--warehouse", warehouse, "--keys", text],
        ["keys", "list", text],
        ["keys", "create", text, "k"],
        ["keys", "create", out, text],
        ["orc", "inspect", text],
        ["orc", "verify", text],
        ["orc", "decrypt", text, out],
        ["orc", "decrypt", out, text],
        ["lookup", "status", text],
        ["lineage", "trace", "--warehouse", text, "db.t.id"],
        ["lineage", "trace", "--warehouse", warehouse, text],
        ["policy", "test", text],
        ["call", text],
        ["call", "compact", "--warehouse", text, "--table", "db.t"],
        ["call", "compact", "--warehouse", warehouse, "--table", text],
        [*call_of, "--table", "db.t", "--retain-max", text],
        [*call_of, "--table", "db.t", "--older-than", text],
        [text],
    ]


def test_the_command_line(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    file = tmp_path / "file"
    file.write_text("x")
    texts = ["", "x", "..", "\0", "表", "/nonexistent/x", str(tmp_path), str(file), f"{file}/x", "-", "--"]
    texts += ["9" * 400, "a" * 5000, "file:", f"file:{tmp_path}", "s3://", "s3:///x", "abc://x", "\udcff"]
    lines = [
        line
        for number, text in enumerate(texts)
        for line in command_lines(world.catalog.warehouse, text, str(tmp_path / f"out{number}"))
    ]
    found = []
    for line in sampled(lines, 12):
        error = escaped(partial(run, line))
        if error is not None:
            found.append(f"{line}: {error}")
    assert found == []


def writes(world: World) -> dict[str, Callable[[], Any]]:
    rows, context = pa.table({"id": [7], "p": ["a"]}), ProcedureContext(world.catalog)
    schema = Schema.from_arrow(rows.schema)
    return {
        "append": lambda: world.rows.append(rows),
        "keyed": lambda: world.keyed.append(rows),
        "create_table": lambda: world.catalog.create_table("db.new", schema),
        "create_namespace": lambda: world.catalog.create_namespace("new", {"comment": "x" * 100}),
        "create_tag": lambda: world.rows.create_tag("two"),
        "create_branch": lambda: world.rows.create_branch("b"),
        "compact": lambda: call(context, "compact", "db.k"),
        "merge_schema": lambda: call(context, "merge_schema", "db.t", "more INT"),
        "clone": lambda: call(context, "clone", "db.t", "db.copy"),
        "mark_partition_done": lambda: call(context, "mark_partition_done", "db.t", "p=a"),
        "expire_snapshots": lambda: call(context, "expire_snapshots", "db.k", retain_max=1),
        "rename_table": lambda: world.catalog.rename_table("db.k", "db.k2"),
        "drop_table": lambda: world.catalog.drop_table("db.t"),
        "create_key_file": lambda: create_key_file(f"{world.catalog.warehouse}/new.json", ["k"]),
    }


def test_a_full_disk(world: World) -> None:
    before = world.rows.read().sort_by("id")
    for name, write in writes(world).items():
        if name in ("rename_table", "drop_table"):
            continue  # they need no room
        with largest_file(20):
            assert escaped(write) is None, name
    assert world.catalog.load_table("db.t").read().sort_by("id") == before


def test_a_file_where_a_folder_is_due(world: World) -> None:
    location = Path(world.rows.location)
    for folder in ("manifest", "snapshot", "schema", "tag", "branch", "bucket-0", "p=a"):
        place, aside = location / folder, location / f"{folder}.aside"
        if place.exists():
            place.rename(aside)
        place.write_text("")
        kept = {name: write for name, write in writes(world).items() if "_table" not in name}
        for name, write in {**kept, "read": world.rows.read, "tags": world.rows.tags}.items():
            assert escaped(write) is None, (folder, name)
        place.unlink(missing_ok=True)
        if aside.exists():
            aside.rename(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_read_only_folder() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        world = World(Path(folder))
        before = world.rows.read().sort_by("id")
        files = sorted(str(path) for path in Path(folder).rglob("*"))
        os.seteuid(65534)
        try:
            errors = {name: escaped(write) for name, write in writes(world).items()}
            assert world.catalog.load_table("db.t").read().sort_by("id") == before
        finally:
            os.seteuid(0)
        assert {name: error for name, error in errors.items() if error is not None} == {}
        assert sorted(str(path) for path in Path(folder).rglob("*")) == files
