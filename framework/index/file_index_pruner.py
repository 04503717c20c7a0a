"""The step of pruning by file indexes, and the rows of a file that may match."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyroaring import BitMap

from lockgate.framework.index.file_index_reader import FileIndexes, index_path
from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store import TableHandle
from lockgate.pushdown import Predicate

# Planning opens indexes next to files only while they are few: one request each, on object stores 10 ms.
_MOST_OPENED = 64
_THREADS = 8


class ByFileIndex:
    """Leaves out files whose index says that no row matches, and rows of files that are read."""

    name = "file_index"

    def __init__(self, table: TableHandle) -> None:
        self._indexes = FileIndexes(table)

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> list[bool]:
        """Ask embedded indexes, and those next to files if these are few; CorruptFileError for damage."""
        apart = [file for file in files if file.embedded_index is None and index_path(file) is not None]
        opens = len(apart) <= _MOST_OPENED

        def keeps(file: CandidateFile) -> bool:
            asked = file.embedded_index is not None or opens
            return not asked or self._indexes.answer(predicate, file) is not False

        if not (opens and apart):
            return [keeps(file) for file in files]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(keeps, files))

    def rows(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the rows of a file that may match, None if all may; CorruptFileError for damage."""
        answer = self._indexes.answer(predicate, file)
        return None if answer is True else answer if isinstance(answer, BitMap) else BitMap()
