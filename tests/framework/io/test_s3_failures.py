"""A store that fails, or a writer that dies, at each request: tables stay readable and complete."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    IncompleteReadError,
    ReadTimeoutError,
)
from faults import Killed, contents, through
from s3_memory import MemoryClient
from s3_server import S3Server, options_for
from table_work import WORK, Work, check_no_orphans, check_state, repeat

from lockgate.errors import LockgateError, StorageDeniedError, StorageError
from lockgate.framework.io import S3FileSystem, resolve
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])


OPTIONS = options_for("http://in-memory.invalid")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryClient:
    """The store of each catalog that a test opens with `OPTIONS`."""
    client = MemoryClient()
    monkeypatch.setattr("lockgate.framework.io.s3.make_client", lambda settings: client)
    return client


BEFORE: dict[str, Exception] = {
    "denied": ClientError(
        {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "GetObject"
    ),
    "unreachable": EndpointConnectionError(endpoint_url="http://store"),
    "dropped": ConnectionClosedError(endpoint_url="http://store"),
    "half an answer": IncompleteReadError(actual_bytes=1, expected_bytes=2),
}


class Failing:
    """A client whose `point`-th request fails.

    `refused`: the store answers with an error, having done nothing; `lost`: it does what was asked, and the
    answer gets lost; `killed`: the writer dies before it asks, so no other request follows. Others are what
    happens before a request arrives, at this one and all that follow.
    """

    def __init__(self, inner: Any, point: int, how: str, *, changes_only: bool = False) -> None:
        self._inner, self._point, self._how, self._changes_only = inner, point, how, changes_only
        self.asked = 0

    @property
    def failed(self) -> bool:
        return self.asked > self._point

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        if name == "get_paginator":
            return lambda kind: Pages(self, call(kind))
        return lambda **request: self.ask(name, lambda: call(**request))

    def ask(self, name: str, call: Callable[[], Any]) -> Any:
        if self._changes_only and name.startswith(("get", "head", "list")) and not self.failed:
            return call()
        number, self.asked = self.asked, self.asked + 1
        if number < self._point or (number > self._point and self._how in ("refused", "lost")):
            return call()
        if self._how in BEFORE:
            raise BEFORE[self._how]
        if self._how == "killed":
            if threading.current_thread().name.startswith("lockgate observer"):
                raise OSError("killed")  # this thread serves the whole process, which here lives on
            raise Killed
        if self._how == "lost":
            call()
            raise ReadTimeoutError(endpoint_url="http://store")
        raise ClientError({"Error": {"Code": "500"}, "ResponseMetadata": {"HTTPStatusCode": 500}}, name)


class Pages:
    def __init__(self, client: Failing, inner: Any) -> None:
        self._client, self._inner = client, inner

    def paginate(self, **request: Any) -> Any:
        return self._client.ask("list_objects_v2", lambda: self._inner.paginate(**request))


def failing(table: Table, memory: MemoryClient, point: int, how: str) -> tuple[Table, Failing]:
    """The table as a process sees it whose `point`-th request fails."""
    files, _ = resolve(f"s3://{table.location}", OPTIONS)
    assert isinstance(files, S3FileSystem)
    client = Failing(memory, point, how)
    files._made = (os.getpid(), client)
    return Table(table.identifier, table.location, table.schema, TableContext(files)), client


def one(number: int) -> pa.Table:
    return pa.table({"id": [number], "n": [number]}, schema=COLUMNS)


def append(table: Table, number: int) -> None:
    table.append(one(number))


def overwrite(table: Table, number: int) -> None:
    table.overwrite(one(number))


def commit_of_a_stream(table: Table, number: int) -> None:
    table.commit(table.write(one(number)), user="stream", identifier=number)


def tag_and_expire(table: Table, number: int) -> None:
    table.create_tag(f"tag-{number}")
    expire_snapshots(table, retain_min=2, retain_max=2)


def ids(table: Table, **how: Any) -> list[int]:
    return sorted(table.read(columns=["id"], **how)["id"].to_pylist())


@pytest.mark.parametrize(
    ("work", "how"),
    [
        (append, "refused"),
        (append, "lost"),
        (append, "killed"),
        (commit_of_a_stream, "lost"),
        pytest.param(commit_of_a_stream, "refused", marks=pytest.mark.slow),
        pytest.param(commit_of_a_stream, "killed", marks=pytest.mark.slow),
        pytest.param(overwrite, "lost", marks=pytest.mark.slow),
        pytest.param(tag_and_expire, "refused", marks=pytest.mark.slow),
        pytest.param(tag_and_expire, "killed", marks=pytest.mark.slow),
    ],
)
def test_a_failure_at_any_request(memory: MemoryClient, work: Callable[[Table, int], None], how: str) -> None:
    table = new_catalog().create_table("db.t", Schema.from_arrow(COLUMNS))
    for point in range(100):
        table.overwrite(one(-1))
        if work is tag_and_expire:
            clear(table)
        added = [-1, point]
        wanted = {append: added, commit_of_a_stream: added, overwrite: [point]}.get(work, [-1])
        broken, client = failing(table, memory, point, how)
        try:
            work(broken, point)
        except (OSError, LockgateError, Killed):
            # No partial result: the state before or after the work.
            assert ids(table) in ([-1], wanted)
        else:
            assert ids(table) == wanted
        if work is commit_of_a_stream:
            # After an unknown outcome the writer commits again; each row exists once.
            work(table, point)
            assert ids(table) == wanted
        if not client.failed:
            break
    assert point > 5
    assert not client.failed
    check_orphans(table)
    for tag in table.tags():
        assert ids(table, tag=tag.name) == [-1]


ASKED: dict[str, Callable[[Catalog], object]] = {
    "databases": lambda catalog: catalog.list_namespaces(),
    "properties": lambda catalog: catalog.namespace_properties("db"),
    "tables": lambda catalog: catalog.list_tables("db"),
    "exists": lambda catalog: catalog.table_exists("db.t"),
    "read": lambda catalog: catalog.load_table("db.t").read(),
    "batches": lambda catalog: list(catalog.load_table("db.t").read_batches()),
    "changes": lambda catalog: list(catalog.load_table("db.t").changes(0, 2)),
    "files": lambda catalog: catalog.load_table("db.t").system("files"),
    "snapshots": lambda catalog: catalog.load_table("db.t").snapshots(),
    "tags": lambda catalog: catalog.load_table("db.t").tags(),
    "branches": lambda catalog: catalog.load_table("db.t").branches(),
    "consumers": lambda catalog: catalog.load_table("db.t").consumers(),
    "append": lambda catalog: append(catalog.load_table("db.t"), 3),
    "tag": lambda catalog: catalog.load_table("db.t").create_tag(uuid.uuid4().hex),
    "alter": lambda catalog: catalog.alter_table("db.t", [SetOption("file.compression", "none")]),
    "create": lambda catalog: catalog.create_table(f"db.{uuid.uuid4().hex}", Schema.from_arrow(COLUMNS)),
}


@pytest.mark.parametrize("how", BEFORE)
def test_an_unavailable_store_is_named(memory: MemoryClient, how: str) -> None:
    """From any request on, every operation fails with StorageError, never with an error of boto3."""
    table = new_catalog().create_table("db.t", Schema.from_arrow(COLUMNS))
    append(table, 1)
    append(table, 2)
    table.create_tag("one")
    root = f"s3://{table.location.partition('/db.db')[0]}"
    wanted = StorageDeniedError if how == "denied" else StorageError
    for name, ask in ASKED.items():
        for point in range(200):
            catalog = Catalog(root, options=OPTIONS)
            client = Failing(memory, point, how)
            assert isinstance(catalog.file_system, S3FileSystem)
            catalog.file_system._made = (os.getpid(), client)
            with suppress(wanted):
                ask(catalog)
            if not client.failed:
                break
        assert point, name
        assert not client.failed, name


def clear(table: Table) -> None:
    """Leave three snapshots and no tags, so that each round does the same work."""
    for tag in table.tags():
        table.delete_tag(tag.name)
    expire_snapshots(table, retain_min=2, retain_max=2)
    table.overwrite(one(-1))


def check_orphans(table: Table) -> None:
    """`remove_orphan_files` keeps referenced files only."""
    later = now_millis() - now_millis() % 1000
    remove_orphan_files(table, older_than_millis=later, allow_recent=True)
    needed = NeededFiles(table)
    for snapshot in table.snapshots():
        assert len(ids(table, snapshot_id=snapshot.id)) in (1, 2)
    for folder in ("bucket-0", "manifest"):
        infos = table.file_system.list(f"{table.location}/{folder}")
        assert infos
        assert [info.name for info in infos if info.name not in needed and info.modified_millis < later] == []


def test_a_large_file_whose_last_answer_is_lost(s3: S3Server, bucket: str) -> None:
    """The parts are combined, and boto3 repeats the request or gives up: the file is ours in both cases."""
    for how in ("lost", "lost and asked again"):
        files, path = resolve(f"s3://{bucket}/{how.replace(' ', '-')}", s3.options())
        assert isinstance(files, S3FileSystem)
        pid, inner = (files._client and files._made) or (0, None)
        files._made = (pid, LosingCompletion(inner, again="again" in how))
        with files.create(path) as file:
            file.write(bytes(17 * 2**20))
        assert files.size(path) == 17 * 2**20
        with pytest.raises(FileExistsError), files.create(path) as file:
            file.write(b"other")


class LosingCompletion:
    """A client that loses the answer to the completion of an upload."""

    def __init__(self, inner: Any, *, again: bool) -> None:
        self._inner, self._again = inner, again

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def complete_multipart_upload(self, **request: Any) -> Any:
        done = self._inner.complete_multipart_upload(**request)
        if self._again:
            return self._inner.complete_multipart_upload(**request)
        assert done
        raise ReadTimeoutError(endpoint_url="http://store")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["lost", "killed"])
@pytest.mark.parametrize(
    "name",
    [
        "compact",
        "expire",
        "remove orphans",
        "replace tag",
        "create branch",
        "rename branch",
        "rollback",
        "alter",
        "create table",
    ],
)
def test_a_failure_at_any_change(memory: MemoryClient, name: str, how: str) -> None:
    """The same as `test_failures_everywhere` on a disk."""
    work = WORK[name]
    catalog = started(work)
    before = contents(catalog)
    counting, client = with_failing_client(memory, catalog, 10**6, how)
    work.done(counting)
    after = contents(catalog)
    for point in range(client.asked):
        catalog = started(work)
        failing_catalog, client = with_failing_client(memory, catalog, point, how)
        with suppress(OSError, LockgateError, Killed):
            work.done(failing_catalog)
        check_state(name, catalog, before, after)
        repeat(work, catalog, after)
        check_no_orphans(catalog)


def new_catalog() -> Catalog:
    """A warehouse in a new bucket, with a database."""
    catalog = Catalog(f"s3://bucket-{uuid.uuid4().hex[:12]}/warehouse", options=OPTIONS)
    catalog.create_namespace("db")
    return catalog


def started(work: Work) -> Catalog:
    """A warehouse in a new bucket, with the table that `work` changes."""
    catalog = new_catalog()
    work.start(catalog)
    return catalog


def with_failing_client(
    memory: MemoryClient, catalog: Catalog, point: int, how: str
) -> tuple[Catalog, Failing]:
    """The same warehouse through a client that fails at one request that changes something."""
    files = catalog.file_system
    assert isinstance(files, S3FileSystem)
    other, _ = resolve(f"s3://{files.bucket}/warehouse", OPTIONS)
    assert isinstance(other, S3FileSystem)
    client = Failing(memory, point, how, changes_only=True)
    other._made = (os.getpid(), client)
    return through(catalog, other), client


@pytest.mark.parametrize(
    ("how", "last"),
    [
        ("killed", 2),
        pytest.param("killed", 100, marks=pytest.mark.slow),
        pytest.param("lost", 100, marks=pytest.mark.slow),
        pytest.param("refused", 100, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_drop(memory: MemoryClient, how: str, last: int) -> None:
    """A store cannot set folders aside: a table goes step by step, and what is left of it means nothing."""
    work = WORK["drop table"]
    counting, client = with_failing_client(memory, started(work), 10**6, how)
    work.done(counting)
    assert client.asked > 3
    for point in range(client.asked)[-last:]:
        catalog = started(work)
        before = contents(catalog)
        failing_catalog, _ = with_failing_client(memory, catalog, point, how)
        with suppress(OSError, LockgateError, Killed):
            work.done(failing_catalog)
        for part, value in contents(catalog).items():
            assert value == before[part] or (part[1] == "newest" and value == "[]"), part
        if point % 2 == 0:
            catalog.drop_table("db.t", ignore_if_not_exists=True)
        if not catalog.table_exists("db.t"):
            again = catalog.create_table("db.t", Schema.from_arrow(COLUMNS))
            assert (again.read().num_rows, again.tags(), again.branches()) == (0, [], [])
            again.append(one(1))
            assert ids(catalog.load_table("db.t")) == [1]
