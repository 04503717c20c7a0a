"""States of other users, and of snapshots whose number came again, are answered from by neither reader."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from java_tests import java_program, test_jar

from lockgate.errors import LockgateError, LookupCacheError, SnapshotNotFoundError, UnsafePathError
from lockgate.framework.spark.bridge.connector_jars import jar
from lockgate.framework.spark.java.build_connector import find_spark_jars
from lockgate.framework.store import Catalog, Schema
from lockgate.lookup.cache.builder import fingerprint
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.cache.version_info import mark_of
from lockgate.lookup.driver.lookup_tables import LookupTable, make_spec, open_lookup
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join import lookup_worker
from lockgate.lookup.server.key_server import KeyServer, fetch_cipher
from lockgate.lookup.spec.lookup_spec import pin_id

MakeTable = Callable[..., Any]
HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
OTHER = 65534
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
FIELDS = [pa.field("text", pa.string())]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folders")

Reader = Callable[[CacheDirectory, int, int], str]


def by_python(directory: CacheDirectory, snapshot_id: int, mark: int) -> str:
    """Ask a state for the key 1, as a task in a Python worker does, which waits for it for a moment."""
    keys = [pa.array([1], pa.int64())]
    try:
        wanted = lookup_worker.WantedState(str(directory.path), snapshot_id, 1 << 20, 0.2, mark)
        found = lookup_worker.answer(wanted, keys, lookup_worker.AnswerForm(FIELDS, many=False))
    except LockgateError as error:
        return f"{type(error).__name__}: {error}"
    assert found.to_pylist() in ([{"text": "old"}], [{"text": "new"}])
    return "opened"


@pytest.fixture(scope="module")
def ask_java() -> Iterator[Callable[[str], str]]:
    path = f"{test_jar()}:{jar()}:{find_spark_jars()}/*"
    command = [java_program(), "-Xmx200m", "--enable-native-access=ALL-UNNAMED", "-cp", path]
    # As Spark starts its own.
    command += ["--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]

    with subprocess.Popen(
        [*command, "io.lockgate.spark.lookup.StatesCases"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        source, sink = process.stdout, process.stdin

        def ask(line: str) -> str:
            sink.write(f"{line}\n")
            sink.flush()
            return source.readline().removesuffix("\n")

        yield ask
        sink.close()


@pytest.fixture(params=["python", "jvm"])
def read(request: pytest.FixtureRequest) -> Reader:
    if request.param == "python":
        return by_python
    ask = request.getfixturevalue("ask_java")

    def by_jvm(directory: CacheDirectory, snapshot_id: int, mark: int) -> str:
        return str(ask(f"open\t{directory.path}\t{snapshot_id}\t{mark}"))

    return by_jvm


def test_marks_are_the_same_in_both_languages(ask_java: Callable[[str], str]) -> None:
    cases = json.loads((FIXTURES / "snapshot_marks.json").read_text())
    assert [mark_of(case["fingerprint"]) for case in cases] == [case["mark"] for case in cases]
    assert [ask_java(f"mark\t{case['fingerprint']}") for case in cases] == [
        str(case["mark"]) for case in cases
    ]


@pytest.fixture
def storage() -> str:
    """Mapped files: those that the JVM reads itself."""
    return "memory"


@pytest.fixture
def cached(make_table: MakeTable) -> tuple[Any, CacheDirectory]:
    """A table of one snapshot, and its cache without an owner."""
    table = make_table(SCHEMA, ("id",))
    table.commit([("+I", {"id": 1, "text": "old"})])
    with open_lookup(table, "id") as lookup:
        return table, CacheDirectory(Path(lookup.status().directory))


def mark_at(table: Any, snapshot_id: int) -> int:
    return mark_of(fingerprint(table.snapshot(snapshot_id)))


# --- whose folders -------------------------------------------------------------------------------


def test_own_folders_are_read(cached: tuple[Any, CacheDirectory], read: Reader) -> None:
    table, directory = cached
    assert read(directory, 1, mark_at(table, 1)) == "opened"


@needs_root
@pytest.mark.parametrize("part", ["..", ".", "generations", "generations/1"])
def test_folders_of_another_user(cached: tuple[Any, CacheDirectory], read: Reader, part: str) -> None:
    table, directory = cached
    os.chown(directory.path / part, OTHER, OTHER)
    said = read(directory, 1, mark_at(table, 1))
    assert said.startswith("UnsafePathError: ")
    assert f"belongs to {'nobody (' if 'nobody' in said else ''}uid {OTHER}" in said
    assert "choose another folder" in said
    assert "lookup.cache-dir" in said


@needs_root
def test_a_folder_behind_a_link_of_another_user(cached: tuple[Any, CacheDirectory], read: Reader) -> None:
    table, directory = cached
    moved = directory.path.with_name("moved")
    directory.path.rename(moved)
    directory.path.symlink_to(moved)
    os.chown(directory.path, OTHER, OTHER, follow_symlinks=False)
    assert "UnsafePathError: the link " in read(directory, 1, mark_at(table, 1))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_folders_that_others_can_enter(cached: tuple[Any, CacheDirectory], read: Reader, mode: int) -> None:
    table, directory = cached
    directory.path.chmod(mode)
    assert f"(mode {mode:04o})" in read(directory, 1, mark_at(table, 1))


@needs_root
def test_owners_refuse_folders_of_another_user(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table(SCHEMA, ("id",))
    table.commit([("+I", {"id": 1, "text": "old"})])
    (tmp_path / "cache").mkdir(mode=0o755)
    os.chown(tmp_path / "cache", OTHER, OTHER)
    with pytest.raises(UnsafePathError, match=r"cache belongs to .*lookup\.cache-dir"):
        open_lookup(table, "id")
    os.chown(tmp_path / "cache", 0, 0)
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(UnsafePathError, match=r"can write to .*cache \(mode 0777\)"):
        open_lookup(table, "id")


@needs_root
def test_keys_are_not_asked_for_at_sockets_of_another_user(cached: tuple[Any, CacheDirectory]) -> None:
    _, directory = cached
    server = KeyServer(directory, lambda: b"x" * 32)
    try:
        (socket,) = (directory.path / "keys").glob("*.sock")
        os.chown(socket, OTHER, OTHER)
        with pytest.raises(UnsafePathError, match="belongs to"):
            fetch_cipher(directory, 0.0)
        os.chown(directory.path / "keys", OTHER, OTHER)
        with pytest.raises(UnsafePathError, match="keys belongs to"):
            KeyServer(directory, lambda: None)
    finally:
        server.close()


# --- which version -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["cache_format", "row_codec"])
@pytest.mark.parametrize("other", [0, 99, "1", None])
def test_caches_of_another_version_are_refused(
    cached: tuple[Any, CacheDirectory], read: Reader, version: str, other: object
) -> None:
    table, directory = cached
    layout = directory.path / "LAYOUT.json"
    layout.write_text(json.dumps({**json.loads(layout.read_text()), version: other}))
    said = read(directory, 1, mark_at(table, 1))
    assert said.startswith(f"VersionMismatchError: the lookup cache {directory.path} has format ")
    assert f"{'format' if version == 'cache_format' else 'row codec'} {other}" in said.replace("null", "None")
    assert "install one version on driver and executors" in said


def test_a_file_of_a_cache_that_lacks_something_is_named(cached: tuple[Any, CacheDirectory]) -> None:
    table, directory = cached
    mark = mark_at(table, 1)
    info = directory.path / "generations" / "1" / "GENERATION.json"
    whole = json.loads(info.read_text())
    info.write_text(json.dumps({name: whole[name] for name in whole if name != "fingerprint"}))
    with pytest.raises(LookupCacheError, match=f"{info} is damaged or of another version: fingerprint"):
        directory.version(1)
    for content in ({"type": "x"}, {"message": "x"}, [], "x"):
        refusal = directory.path / "wanted" / f"7-{mark}.error"
        refusal.write_text(json.dumps(content))
        assert directory.take_refusal(7, mark) is None, "the owner is asked again"
        assert not refusal.exists()


# --- which snapshot ------------------------------------------------------------------------------


def test_a_state_from_before_a_rollback_is_not_answered_from(
    cached: tuple[Any, CacheDirectory], read: Reader
) -> None:
    """As on a second host, whose owner has not heard of the rollback yet."""
    table, directory = cached
    table.commit([("+I", {"id": 1, "text": "old"})])
    with open_lookup(table, "id"):
        pass
    before = mark_at(table, 2)
    table.rollback(1)
    table.commit([("+I", {"id": 1, "text": "new"})])
    after = mark_at(table, 2)
    assert before != after
    assert read(directory, 2, before) == "opened"
    said = read(directory, 2, after)
    # Nobody is there who could build the other one.
    assert "no owner builds the lookup cache" in said
    wishes = [path.name for path in (directory.path / "wanted").iterdir()]
    assert wishes == [f"2-{after}"]


def test_the_owner_builds_the_snapshot_that_is_meant_or_says_why_not(
    cached: tuple[Any, CacheDirectory], read: Reader
) -> None:
    table, directory = cached
    before = mark_at(table, 1)
    table.rollback(0)
    table.commit([("+I", {"id": 1, "text": "new"})])
    with open_lookup(table, "id"):
        pass
    assert read(directory, 1, mark_at(table, 1)) == "opened"
    # What an owner answers to a wish for the old one.
    error = {"type": "SnapshotNotFoundError", "message": "snapshot 1 of db.t was rolled back"}
    directory.refuse(1, error, before)
    assert read(directory, 1, before) == "SnapshotNotFoundError: snapshot 1 of db.t was rolled back"


def dimension(folder: Path) -> Catalog:
    catalog = Catalog(str(folder / "warehouse"))
    catalog.create_namespace("db")
    options = {"bucket": "1"}
    catalog.create_table("db.dim", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=options))
    return catalog


def started(catalog: Catalog, folder: Path) -> Lookup:
    table = catalog.load_table("db.dim")
    options = {"lookup.cache-dir": str(folder), "lookup.refresh.interval": "50 ms"}
    return Lookup(catalog, table, make_spec(table, "id", options=options))


def rows(text: str) -> pa.Table:
    return pa.table({"id": [1], "text": [text]}, schema=SCHEMA)


def test_two_cache_folders_and_a_number_that_comes_again(tmp_path: Path) -> None:
    catalog = dimension(tmp_path)
    table = catalog.load_table("db.dim")
    table.append(rows("old"))
    second = table.append(rows("old"))
    one, two = started(catalog, tmp_path / "one"), started(catalog, tmp_path / "two")
    try:
        old = one.choose("query", 0)
        assert old == two.choose(None, None) == (2, mark_of(fingerprint(second)))
        two.close()  # its host keeps the old state, and nobody brings it forward
        table.rollback(1)
        table.append(rows("new"))
        one.wait_for(None)
        new = one.choose("query", 1)
        assert new[0] == 2
        assert new[1] != old[1]
        assert by_python(two.directory, *old) == "opened"
        assert "no owner builds" in by_python(two.directory, *new)
        assert by_python(one.directory, *new) == "opened"
        # The owner, asked for the old one, says that it is gone, and nothing else is answered.
        said = by_python_patient(one.directory, *old)
        assert said.startswith("SnapshotNotFoundError: snapshot 2 of db.dim was rolled back")
        assert one.status().last_error is None
    finally:
        one.close()
        two.close()


def by_python_patient(directory: CacheDirectory, snapshot_id: int, mark: int) -> str:
    try:
        lookup_worker.cache_version(
            lookup_worker.WantedState(str(directory.path), snapshot_id, 1 << 20, 20.0, mark)
        )
    except LockgateError as error:
        return f"{type(error).__name__}: {error}"
    return "opened"


def test_a_batch_that_is_planned_again_after_its_snapshot_was_replaced(tmp_path: Path) -> None:
    catalog = dimension(tmp_path)
    table = catalog.load_table("db.dim")
    table.append(rows("old"))
    table.append(rows("old"))
    lookup = started(catalog, tmp_path / "cache")
    try:
        assert lookup.pin("query", 0) == 2
        mark = PinnedSnapshots(table, pin_id(table, lookup.spec)).mark("query", 0)
        assert mark == mark_of(fingerprint(table.snapshot(2)))
        assert PinnedSnapshots(table, pin_id(table, lookup.spec)).get("query", 0) == 2
        table.rollback(1)
        table.append(rows("new"))
        # The pin holds a number that is another snapshot's by now.
        lookup.wait_for(None)
        assert lookup.pin("other", 0) == 2
        words = (
            r"batch 0 of query query .*snapshot 2 .* was rolled back, and another .*consumer 'lockgate-query-"
        )
        with pytest.raises(SnapshotNotFoundError, match=words) as raised:
            lookup.pin("query", 0)
        consumer = str(raised.value).split("consumer '")[1].split("'")[0]
        assert table.delete_consumer(consumer)
        assert lookup.pin("query", 0) == 2
    finally:
        lookup.close()


def test_pins_of_older_drivers_have_no_mark(tmp_path: Path) -> None:
    table = dimension(tmp_path).load_table("db.dim")
    table.append(rows("old"))
    table.record_consumer("lockgate-query-id-7", 1)
    pins = PinnedSnapshots(table, "id")
    assert (pins.get("query", 7), pins.mark("query", 7)) == (1, None)
    pins.record("query", 8, 1, 99)
    pins.record("query", 9, 0, 0)
    again = PinnedSnapshots(table, "id")
    assert [(again.get("query", n), again.mark("query", n)) for n in (8, 9)] == [(1, 99), (0, None)]
    assert again.name_of("query", 8) == "lockgate-query-id-8.99"


def test_a_lookup_that_reads_by_itself(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",))
    table.commit([("+I", {"id": 1, "text": "old"})])
    lookup: LookupTable = open_lookup(table, "id")
    table.rollback(0)
    table.commit([("+I", {"id": 1, "text": "new"})])
    lookup.refresh(1)
    keys = pa.RecordBatch.from_pydict({"id": [1]})
    assert lookup.get(keys).rows.to_pylist() == [{"text": "new"}]
    lookup.close()
    with pytest.raises(LookupCacheError):
        lookup.get(keys)
