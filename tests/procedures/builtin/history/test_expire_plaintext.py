"""`expire_plaintext`: no value of an encrypted column is left in a table's folder, however it came in."""

from __future__ import annotations

import datetime
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faults import KILLED, KILLED_AFTER, FaultyFileSystem, Killed, through
from plain_search import found_in
from plaintext_table import (
    ENCRYPT,
    ROADS,
    SECRET,
    content,
    make,
    moved_to_another_key,
    people,
    unencrypted,
    written_before,
)

from lockgate.errors import CorruptFileError, KeyMissingError, LockgateError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import audit_file
from lockgate.framework.store import Catalog
from lockgate.framework.store.confidential.exposures import ExposedState, Where, exposures
from lockgate.framework.store.ddl.schema_changes import AddColumn, SetOption
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext, ProcedureResult, call

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "key"])
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
def test_nothing_is_left(
    catalog: Catalog, run: Run, road: Callable[[Catalog, Sequence[str]], None], keys: Sequence[str]
) -> None:
    road(catalog, keys)
    table = catalog.load_table("db.t")
    before = content(table)
    assert found_in(table.location, SECRET)
    looked = run("expire_plaintext", table="db.t", dry_run=True)
    assert looked["plain_files_before"] == len(exposures(table)) > 0
    assert found_in(table.location, SECRET)
    result = run("expire_plaintext", table="db.t")
    assert found_in(table.location, SECRET) == {}
    assert (result["plain_files_before"], result["plain_files_after"], result["remaining"]) == (
        looked["plain_files_before"],
        0,
        None,
    )
    assert content(catalog.load_table("db.t")) == before
    assert run("expire_plaintext", table="db.t").rows == ((0,) * 7 + (None,),)


def test_every_file_that_shows_values_is_known(catalog: Catalog) -> None:
    """The search of raw bytes is the referee of the survey."""
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    table.overwrite(people(8, secret="x"))
    known = {each.path for each in exposures(table)}
    assert known == set(found_in(table.location, SECRET))
    assert {each.where for each in exposures(table)} == {Where.DATA, Where.MANIFEST}


def test_nothing_to_do(catalog: Catalog, run: Run, digest: Callable[[str], str]) -> None:
    table = make(catalog)
    table.append(people(1))
    state = digest(table.location)
    assert run("expire_plaintext", table="db.t").rows == ((0,) * 7 + (None,),)
    assert digest(table.location) == state


def test_without_the_key_nothing_changes(
    catalog: Catalog, keyless: Catalog, run: Run, digest: Callable[[str], str]
) -> None:
    written_before(catalog, ())
    location = catalog.load_table("db.t").location
    state = digest(location)
    assert run("expire_plaintext", table="db.t", dry_run=True, within=keyless)["plain_files_before"] > 0
    with pytest.raises(KeyMissingError):
        run("expire_plaintext", table="db.t", within=keyless)
    assert digest(location) == state


# --- what may not go -----------------------------------------------------------------------------


def test_tags_stay_until_they_may_go(catalog: Catalog, run: Run) -> None:
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    table.create_tag("first", 1)
    table.overwrite(people(9))
    table.create_tag("clean")
    result = run("expire_plaintext", table="db.t").to_dicts()[0]
    assert (
        "tag 'first' needs 1 data file and 1 manifest (ssn): delete it, or give drop_tags"
        in result["remaining"]
    )
    assert "'clean'" not in result["remaining"]
    assert table.read(tag="first").to_pylist() == people(0).to_pylist()
    result = run("expire_plaintext", table="db.t", drop_tags=True).to_dicts()[0]
    assert (result["deleted_tags_count"], result["plain_files_after"], result["remaining"]) == (1, 0, None)
    assert result["deleted_data_files_count"] == 1
    assert found_in(table.location, SECRET) == {}
    assert [tag.name for tag in table.tags()] == ["clean"]


def test_branches_are_named(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(people(1))
    table.create_branch("b", 1)
    catalog.load_table("db.t$branch_b").append(people(2))
    catalog.alter_table("db.t", [ENCRYPT])
    remaining = run("expire_plaintext", table="db.t")["remaining"]
    assert remaining.startswith("branch 'b' needs 2 data files and 2 manifests (ssn): set orc.encrypt there")
    assert "'db.t$branch_b'" in remaining
    branch = catalog.alter_table("db.t$branch_b", [ENCRYPT])
    result = run("expire_plaintext", table="db.t$branch_b").to_dicts()[0]
    assert (result["plain_files_after"], result["remaining"]) == (0, None)
    assert found_in(table.location, SECRET) == {}
    assert len(content(branch)) == 2


def test_a_branch_that_gave_an_id_to_another_column(catalog: Catalog) -> None:
    """Ids count for each branch by itself from where it parted."""
    table = make(catalog)
    table.append(people(1))
    table.create_branch("b", 1)
    branch = catalog.alter_table("db.t$branch_b", [AddColumn(("note",), STRING)])
    branch.append(pa.table({"id": [5], "note": ["no secret"]}))
    catalog.alter_table("db.t", [AddColumn(("pin",), STRING)])
    table = catalog.alter_table("db.t", [SetOption("orc.encrypt", "pii:pin")])
    assert exposures(table) == []


def test_consumers_keep_their_snapshots(catalog: Catalog, run: Run) -> None:
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    table.record_consumer("job", 2)
    remaining = run("expire_plaintext", table="db.t")["remaining"]
    assert "older snapshots up to 4 need" in remaining
    assert "they go when consumers need them no more (job)" in remaining
    table.delete_consumer("job")
    assert run("expire_plaintext", table="db.t")["remaining"] is None
    assert found_in(table.location, SECRET) == {}


def test_queries_that_run_keep_their_snapshots(catalog: Catalog, run: Run) -> None:
    """`older_than`: what was the newest snapshot since then stays; the next call takes it."""
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    time.sleep(0.01)
    began = datetime.datetime.now(datetime.UTC)
    reading = table.scan()
    result = run("expire_plaintext", table="db.t", older_than=began).to_dicts()[0]
    assert result["deleted_snapshots_count"] == 3
    assert "older snapshots up to 4 need" in result["remaining"]
    assert table.read(plan=reading).num_rows == 4
    result = run("expire_plaintext", table="db.t").to_dicts()[0]
    assert (result["files_rewritten"], result["deleted_snapshots_count"]) == (0, 1)
    assert found_in(table.location, SECRET) == {}


def test_orphans_go_when_nobody_writes(catalog: Catalog, run: Run) -> None:
    table = make(catalog, **{"orc.encrypt": "pii:ssn"})
    table.append(people(1))
    unencrypted(table).write(people(2))
    (shown,) = exposures(table)
    assert (shown.where, shown.columns, shown.holders) == (Where.DATA, ("ssn",), ())
    (Path(table.location) / "bucket-0" / ".lockgate-data-1.orc.0.tmp").write_bytes(b"ORC" + SECRET.encode())
    result = run("expire_plaintext", table="db.t").to_dicts()[0]
    assert result["remaining"].startswith("nothing refers to 1 data file and 1 unfinished file")
    time.sleep(0.01)
    result = run("expire_plaintext", table="db.t", allow_recent=True).to_dicts()[0]
    assert (result["deleted_data_files_count"], result["remaining"]) == (2, None)
    assert found_in(table.location, SECRET) == {}


def test_lost_manifests_are_found(catalog: Catalog) -> None:
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    lost = table.manifests.write_manifest(table.manifests.live_files(snapshot))
    (shown,) = [each for each in exposures(table) if each.path.endswith(lost.file_name)]
    assert (shown.where, shown.holders) == (Where.MANIFEST, ())


def test_holders_are_named(catalog: Catalog) -> None:
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    table.create_tag("early", 1)
    table.overwrite(people(7, secret="x"))
    shown = [each for each in exposures(table) if each.where is Where.DATA]
    assert len(shown) == 4
    assert sorted((each.holders for each in shown), key=len)[-1] == (
        ExposedState(None, 1),
        ExposedState(None, 2),
        ExposedState(None, 3),
        ExposedState(None, 4),
        ExposedState(None, tag="early"),
    )


# --- next to others, and killed -------------------------------------------------------------------


def test_rows_written_concurrently_survive(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.store.maintenance import table_compaction as compact

    written_before(catalog, ())
    table = catalog.load_table("db.t")
    rewrite = compact.rewrite

    def rewrite_slowly(*arguments: Any) -> Any:
        message = rewrite(*arguments)
        table.append(people(30))
        unencrypted(table).append(people(31))
        return message

    monkeypatch.setattr(compact, "rewrite", rewrite_slowly)
    result = run("expire_plaintext", table="db.t").to_dicts()[0]
    assert {row["id"] for row in content(table)} == {0, 1, 2, 3, 30, 31}
    assert "the newest snapshot needs 1 data file" in result["remaining"]
    monkeypatch.undo()
    assert run("expire_plaintext", table="db.t")["remaining"] is None
    assert found_in(table.location, SECRET) == {}


def test_another_compaction_gets_in_the_way(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.store.maintenance import table_compaction as compact

    written_before(catalog, ())
    rewrite = compact.rewrite

    def after_another(*arguments: Any) -> Any:
        monkeypatch.undo()
        run("compact", table="db.t")
        return rewrite(*arguments)

    monkeypatch.setattr(compact, "rewrite", after_another)
    assert run("expire_plaintext", table="db.t")["remaining"] is None
    assert len(content(catalog.load_table("db.t"))) == 4


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    catalog = Catalog(tmp_path_factory.mktemp("started") / "w", keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("db")
    table = make(catalog, ("id",))
    for number in range(2):
        table.append(people(number))
    table.create_tag("first", 1)
    catalog.alter_table("db.t", [ENCRYPT])
    return catalog


@pytest.mark.parametrize("how", [pytest.param(KILLED), pytest.param(KILLED_AFTER, marks=pytest.mark.slow)])
def test_killed_at_any_operation(
    started: Catalog, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for cache in ("_lists", "_manifests", "_snapshots"):
        # Anyone who calls again is another process, which remembers nothing.
        monkeypatch.setattr(manifest_files, cache, manifest_files.ParsedCache(0))
    origin = Path(started.load_table("db.t").location).parent.parent
    before = content(started.load_table("db.t"))
    for point in changes_of(origin, tmp_path / "whole"):
        folder = tmp_path / str(point)
        shutil.copytree(origin, folder)
        catalog = Catalog(folder, keys=MemoryKeyProvider({"pii@0": bytes(16)}))
        files = FaultyFileSystem(point, how)
        try:
            expire(through(catalog, files))
        except (Killed, LockgateError):
            assert files.failed
        assert content(catalog.load_table("db.t")) == before
        assert expire(catalog)["remaining"] is None
        assert content(catalog.load_table("db.t")) == before
        assert found_in(folder, SECRET) == {}
        shutil.rmtree(folder)


def changes_of(origin: Path, folder: Path) -> Iterator[int]:
    shutil.copytree(origin, folder)
    counting = FaultyFileSystem()
    keys = MemoryKeyProvider({"pii@0": bytes(16)})
    assert expire(through(Catalog(folder, keys=keys), counting))["plain_files_after"] == 0
    yield from sorted(counting.changes)


def expire(catalog: Catalog) -> ProcedureResult:
    return call(
        ProcedureContext(catalog), "expire_plaintext", table="db.t", drop_tags=True, allow_recent=True
    )


def test_a_query_begun_before_fails_loudly(catalog: Catalog, run: Run) -> None:
    written_before(catalog, ())
    table = catalog.load_table("db.t")
    reading = table.scan()
    run("expire_plaintext", table="db.t")
    with pytest.raises((CorruptFileError, FileNotFoundError)):
        table.read(plan=reading)


def test_files_are_encrypted_under_the_key_of_now(catalog: Catalog, run: Run) -> None:
    moved_to_another_key(catalog, ())
    run("expire_plaintext", table="db.t")
    table = catalog.load_table("db.t")
    for path in Path(table.location).rglob("data-*.orc"):
        assert not audit_file(str(path), {"ssn": "other"})
