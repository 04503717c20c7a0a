"""Errors of storage have names, with the operating system's error as their cause."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import (
    CorruptFileError,
    NameTooLongError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
)
from lockgate.framework.io.storage_errors import named_errors
from lockgate.framework.store import Catalog, Schema, Table

ROWS = pa.table({"id": [1], "p": ["a"]})
NAMES = [
    (errno.ENOSPC, StorageFullError, "no space is left there"),
    (errno.EDQUOT, StorageFullError, "no space is left there"),
    (errno.EROFS, StorageDeniedError, "the place is read-only"),
    (errno.EACCES, StorageDeniedError, "this user may not do that there"),
    (errno.EPERM, StorageDeniedError, "this user may not do that there"),
    (errno.EIO, StorageError, "the disk or network does not answer"),
    (errno.ECONNRESET, StorageError, "the disk or network does not answer"),
    (errno.ENAMETOOLONG, NameTooLongError, "a name is too long"),
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, partition_keys=("p",)))


@pytest.mark.parametrize(("number", "kind", "text"), NAMES)
@pytest.mark.parametrize("step", ["create", "write_new"])
def test_errors_of_a_table_have_names(
    table: Table, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StorageError], text: str, step: str
) -> None:
    own = OSError(number, "as the system says it", "/place/of/it")

    def fail(*_: object, **__: object) -> None:
        raise own

    monkeypatch.setattr(table.file_system, step, fail)
    with pytest.raises(kind, match=f"^/place/of/it: {text}") as caught:
        table.append(ROWS)
    assert caught.value.__cause__ is own
    assert isinstance(caught.value, OSError)
    assert (caught.value.errno, caught.value.filename) == (number, "/place/of/it")
    assert "as the system says it" in str(caught.value)
    monkeypatch.undo()
    table.append(ROWS)
    assert table.read().num_rows == 1


def test_a_partition_value_that_is_too_long_for_a_folder(table: Table) -> None:
    with pytest.raises(NameTooLongError, match="values of partition columns become names of folders"):
        table.append(pa.table({"id": [1], "p": ["x" * 300]}))
    assert table.snapshots() == []


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(NameTooLongError, match="databases, tables"):
        Catalog(tmp_path).create_namespace("d" * 300)


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError("gone"), FileExistsError("there"), OSError("no number"), CorruptFileError("x")],
)
def test_other_errors_stay_unchanged(error: Exception) -> None:
    @named_errors
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
