"""Segments of an older version of a kind: scans do not believe them, and `build_index` replaces them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from indexed_table import call, check, found, kept, make, rows, segments

from lockgate.framework.index.database.index_segments import opened
from lockgate.framework.index.database.kind_versions import kind_of, outdated_kind
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.index.database.segment_collector import SegmentCollector
from lockgate.framework.index.database.words import Words
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.pushdown import col
from lockgate.pushdown.index import PartName

HOST = 1


@pytest.fixture
def first_version(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The kind `words` before it knew a word of these tests."""
    monkeypatch.setattr(Words, "version", 1)
    monkeypatch.setattr(Words, "keys", lambda self, values, data_type: np.array([7], np.uint64))
    return monkeypatch


def append(table: Table, number: int) -> None:
    """Add a file whose hosts have a word of their own, next to letters of Han."""
    given = rows(number)
    hosts = [None if n % 7 == 6 else f"公司host{number}密码{n % 3}" for n in range(given.num_rows)]
    table.append(given.set_column(HOST, "host", pa.array(hosts, pa.string())))


def kinds(table: Table) -> list[list[str]]:
    every = [opened(table, entry) for entry in segments(table)]
    return [sorted(part.kind for part in each.parts if part.field == HOST) for each in every if each]


@pytest.mark.parametrize("columns", ["host", "auto"])
def test_segments_of_older_versions_are_ignored_and_rebuilt(
    catalog: Catalog, first_version: pytest.MonkeyPatch, columns: str
) -> None:
    table = make(catalog, {"index.words.columns": columns, "index.values.columns": "host"})
    append(table, 0)
    append(table, 1)
    first_version.undo()
    append(table, 2)
    assert kinds(table) == [["values", "words"], ["values", "words"], ["values", "words@2"]]
    asked = col("host").match("HOST1 密码")
    assert kept(table, asked) == 2  # both that only the first version knows, though one has no match
    check(table, asked)
    before = found(table)
    assert call(BuildIndex(), catalog, dry_run=True)[:2] == (2, 1)
    assert call(BuildIndex(), catalog)[:2] == (2, 1)
    assert {kind for each in kinds(table) for kind in each} == {"values", "words@2"}
    assert kept(table, asked) == 1
    assert kept(table, col("host").match("公司")) == 3
    assert (kept(table, col("host") == "公司host1密码1"), found(table)) == (1, before)
    check(table, ~asked)
    assert call(BuildIndex(), catalog)[:2] == (0, 3)


def test_merges_keep_both_versions_apart(catalog: Catalog, first_version: pytest.MonkeyPatch) -> None:
    table = make(catalog, {"index.words.columns": "host", "index.merge-at": "3"})
    append(table, 0)
    append(table, 1)
    first_version.undo()
    append(table, 2)
    append(table, 3)
    assert ["words", "words@2"] in kinds(table)
    asked = col("host").match("host1")
    assert kept(table, asked) == 2
    check(table, asked)
    call(MergeIndex(), catalog)
    assert kinds(table) == [["words", "words@2"]]
    assert call(BuildIndex(), catalog)[:2] == (2, 2)
    assert kept(table, asked) == 1
    call(DropIndex(), catalog, columns=["host"])
    assert kept(table, asked) == 4


def test_a_damaged_older_segment_stays_until_it_is_merged(
    catalog: Catalog, first_version: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(catalog, {"index.words.columns": "host"})
    append(table, 0)
    append(table, 1)
    first_version.undo()
    path = Path(index_path(table, segments(table)[0]))
    damaged = bytearray(path.read_bytes())
    damaged[8] ^= 1  # of the first block of postings
    path.write_bytes(damaged)
    with caplog.at_level(logging.WARNING, "lockgate.index"):
        assert call(BuildIndex(), catalog)[0] == 2
    assert "missing or damaged segment" in caplog.text
    assert kept(table, col("host").match("host1")) == 1
    check(table, col("host").match("host1"))


def test_newer_versions_and_unknown_kinds_are_kept(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("words@3", "others", "others@2", "words@", "words@x", "values@2"):
        part = PartName(kind, HOST, "STRING")
        assert (kind_of(part), outdated_kind(part)) == (None, None)
    assert kind_of(PartName("words@2", HOST, "STRING")) == "words"
    assert kind_of(PartName("values", HOST, "STRING")) == "values"
    table = make(catalog, {"index.words.columns": "host"})
    with monkeypatch.context() as newer:
        newer.setattr(Words, "version", 3)
        newer.setattr(Words, "keys", lambda self, values, data_type: np.array([7], np.uint64))
        append(table, 0)
    append(table, 1)
    assert (kept(table, col("host").match("host0")), kept(table, col("host").match("host1"))) == (1, 2)
    assert call(BuildIndex(), catalog)[:2] == (1, 1)
    assert ["words@3"] in kinds(table)
    assert kept(table, col("host").match("host1")) == 1
    assert SegmentCollector(table).task_keys() is not None
