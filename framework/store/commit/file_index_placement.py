"""File indexes where Paimon keeps them: in the manifest entry while they are small, else next to the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.framework import options as options_of_tables
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.pushdown.index import is_index

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_SUFFIX = ".index"


def has_index(file: DataFileMeta) -> bool:
    """Say whether a data file has an index."""
    return file.embedded_index is not None or any(map(is_index, file.extra_files))


def with_index(
    table: TableHandle, partition: Sequence[Any], bucket: int, file: DataFileMeta, index: bytes
) -> DataFileMeta:
    """Return a data file with an index in the place of any that it has; a large one is written to a file.

    A name is never used again: readers of older snapshots still open what it named.
    """
    others = tuple(name for name in file.extra_files if not is_index(name))
    if len(index) <= table.options.get_option(options_of_tables.FILE_INDEX_THRESHOLD):
        return dataclasses.replace(file, embedded_index=index, extra_files=others)
    name = _next_name(file)
    folder = table.paths.data_file(partition, bucket, file).rpartition("/")[0]
    table.file_system.write_atomic(f"{folder}/{name}", index)
    return dataclasses.replace(file, embedded_index=None, extra_files=(*others, name))


def _next_name(file: DataFileMeta) -> str:
    taken = [name for name in file.extra_files if is_index(name)]
    if not taken:
        return file.file_name + _SUFFIX
    numbers = [name.removesuffix(_SUFFIX).removeprefix(file.file_name).removeprefix("-") for name in taken]
    return f"{file.file_name}-{max((int(n) for n in numbers if n.isdigit()), default=0) + 1}{_SUFFIX}"
