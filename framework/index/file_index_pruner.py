"""Pruning of files and rows by file indexes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyroaring import BitMap

from lockgate.framework.index.file_index_reader import FileIndexes, index_path
from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store import TableHandle
from lockgate.pushdown import Predicate

# Planning opens at most this many separate index files: each is a request, about 10 ms on object stores.
_MAX_OPENED = 64
_THREADS = 8


class ByFileIndex:
    """Skips files, and rows of files, that have no match by their file indexes."""

    name = "file_index"

    def __init__(self, table: TableHandle) -> None:
        self._indexes = FileIndexes(table)

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> list[bool]:
        """Return which files may match, by embedded indexes and, if there are few, separate index files.

        Raises CorruptFileError for damaged indexes.
        """
        separate = [file for file in files if file.embedded_index is None and index_path(file) is not None]
        opens = len(separate) <= _MAX_OPENED

        def keeps(file: CandidateFile) -> bool:
            is_used = file.embedded_index is not None or opens
            return not is_used or self._indexes.answer(predicate, file) is not False

        if not (opens and separate):
            return [keeps(file) for file in files]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(keeps, files))

    def rows(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the rows of a file that may match, None if all may; CorruptFileError for damaged indexes."""
        answer = self._indexes.answer(predicate, file)
        return None if answer is True else answer if isinstance(answer, BitMap) else BitMap()
