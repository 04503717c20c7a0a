"""Deletion vectors of a snapshot: which data files have one, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError
from lockgate.framework.store.deletion_vectors.deletion_vector import (
    FRAME_BYTES,
    DeletedRows,
    check_frame,
    decode,
    is_wide,
)
from lockgate.framework.store.manifests.index_manifest import (
    DELETION_VECTORS,
    IndexEntry,
    VectorRange,
    index_path,
    read_index_manifest,
)
from lockgate.framework.store.manifests.manifest import VectorLocation
from lockgate.framework.store.manifests.parsed_cache import ParsedCache

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

# About 1 KB a vector.
_CACHED_VECTORS = 200_000


class _Found(dict[str, tuple[str, VectorRange]]):
    """The path of the index file and the range in it, by name of the data file."""


_found: ParsedCache[tuple[str, str], _Found] = ParsedCache(_CACHED_VECTORS)


def ranges_of(table: TableHandle, snapshot: Snapshot | None) -> Mapping[str, tuple[str, VectorRange]]:
    """Return where the vectors of a snapshot lie, by name of their data file; CorruptFileError for damage."""
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    key = (table.file_system.uri(table.paths.manifest(snapshot.index_manifest)), str(table.schema.id))
    found = _found.get(key)
    if found is None:
        found = _Found()
        for entry in read_index_manifest(table, snapshot.index_manifest).entries:
            _add(found, table, entry)
        _found.put(key, found)
    return found


def _add(found: _Found, table: TableHandle, entry: IndexEntry) -> None:
    path = index_path(table, entry)
    for each in entry.vectors if entry.kind == DELETION_VECTORS else ():
        if each.data_file in found:
            raise CorruptFileError(
                f"{path} has a second deletion vector of {each.data_file}, which has one already"
            )
        found[each.data_file] = (path, each)


def location_of(table: TableHandle, path: str, found: VectorRange, rows: int) -> VectorLocation:
    """Return the place of the vector of a file with `rows` rows.

    A vector that its manifest does not count is read and counted. Raises CorruptFileError as `read_vector`.
    """
    if found.cardinality is None:
        counted = len(_read(table, path, found.offset, found.length, rows))
        return VectorLocation(path, found.offset, found.length, counted)
    if not 0 <= found.cardinality <= rows:
        raise CorruptFileError(
            f"{path} claims to delete {found.cardinality} rows of {found.data_file}, which has {rows}"
        )
    return VectorLocation(path, found.offset, found.length, found.cardinality)


def read_vector(table: TableHandle, location: VectorLocation, rows: int) -> DeletedRows:
    """Read the vector of a file with `rows` rows: the rows that are not read.

    Raises CorruptFileError if it is missing, damaged, or not what its manifest says.
    """
    found = _deleted(table, location, rows)
    if location.shows is None:
        return found
    if location.but_not is not None:
        found = found - _deleted(table, location.but_not, rows)
    return found.others(rows)


def _deleted(table: TableHandle, location: VectorLocation, rows: int) -> DeletedRows:
    found = _read(table, location.path, location.offset, location.length, rows)
    if len(found) != location.cardinality:
        raise CorruptFileError(
            f"{location.path} is damaged: a vector deletes {len(found)} rows, its manifest says "
            f"{location.cardinality}"
        )
    return found


def read_bytes(table: TableHandle, path: str, found: VectorRange) -> bytes:
    """Read the bytes of a vector as they are, to write them elsewhere; CorruptFileError if there are none."""
    name = f"the deletion vector at byte {found.offset} of {path}"
    if found.offset < 0 or found.length < FRAME_BYTES:
        raise CorruptFileError(f"{name} cannot have {found.length} bytes")
    try:
        with table.file_system.open_input(path) as file:
            file.seek(found.offset)
            data = file.read(found.length + FRAME_BYTES)
    except FileNotFoundError:
        raise CorruptFileError(
            f"{path} is missing, which marks deleted rows; either its snapshot expired while it was read, or "
            "the table is damaged"
        ) from None
    data = data[: found.length] if is_wide(data) else data
    check_frame(data, name)
    return data


def _read(table: TableHandle, path: str, offset: int, length: int, rows: int) -> DeletedRows:
    data = read_bytes(table, path, VectorRange("", offset, length, None))
    return decode(data, rows, f"the deletion vector at byte {offset} of {path}")
