"""Blocks of remote files on a local disk, shared by the processes of one user.

Files of tables never change: a name with a UUID means the same bytes for ever. So a block is found by the
address and the length of its file and its number, and nothing is ever invalidated. A block is written under
another name and renamed: it is whole or not there. Its check sum is read with it, and a damaged block counts
as none.

What is here is what the store has: columns under a key stay encrypted. The folder is closed to other users.

The same in Java: `io.lockgate.spark.files.io.RangeCache`; both pass the cases in
`tests/fixtures/range_cache.json`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lockgate.framework.io.private_folder import make_private_folder

_log = logging.getLogger(__name__)

BLOCK = 1 << 20
"""Bytes of a block; the last one of a file may have fewer."""

Fetch = Callable[[Sequence[tuple[int, int]]], Sequence[bytes]]
"""Returns the bytes of some ranges (offset, length) of a remote file."""

_SUM_BYTES = 4
_SIZE = "size"
_UNFINISHED = "tmp-"
_LOCK = "lock"
_UNFINISHED_SECONDS = 3600
_USED_SECONDS = 60
# Each process looks at the whole folder when it has written this share of the limit.
_SHARE_OF_LIMIT = 16


class RangeCache:
    """A folder of blocks that together take about `limit` bytes; those read longest ago are deleted."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Make the folder, or check it: UnsafePathError if it could be another user's."""
        self.folder = make_private_folder(folder, "choose another fs.lockgate.cache.folder")
        self.limit = limit
        self._written = 0
        self._is_full = False

    def path_of(self, address: str, size: int | None, block: int | str) -> Path:
        """Return the file of a block; that of the length of a remote file if `size` is None."""
        text = f"{address}\0{'' if size is None else size}\0{block}"
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.folder / name[:2] / name

    def size(self, address: str) -> int | None:
        """Return the length of a remote file, None if it is unknown here."""
        data = self._load(self.path_of(address, None, _SIZE))
        return None if data is None else int.from_bytes(data, "big")

    def note_size(self, address: str, size: int) -> None:
        """Keep the length of a remote file."""
        self._store(self.path_of(address, None, _SIZE), size.to_bytes(8, "big"))

    def blocks(self, address: str, size: int, wanted: Iterable[int], fetch: Fetch) -> dict[int, bytes]:
        """Return blocks of a remote file of `size` bytes by number; neighbours are fetched by one request."""
        found: dict[int, bytes] = {}
        missing: list[list[int]] = []
        for block in sorted(set(wanted)):
            data = self._load(self.path_of(address, size, block))
            if data is not None and len(data) == _length(size, block):
                found[block] = data
            elif missing and missing[-1][-1] == block - 1:
                missing[-1].append(block)
            else:
                missing.append([block])
        if not missing:
            return found
        ranges = [(run[0] * BLOCK, sum(_length(size, block) for block in run)) for run in missing]
        for run, data in zip(missing, fetch(ranges), strict=True):
            for number, block in enumerate(run):
                part = bytes(data[number * BLOCK : number * BLOCK + _length(size, block)])
                found[block] = part
                if len(part) == _length(size, block):  # of a file that is cut off nothing is kept
                    self._store(self.path_of(address, size, block), part)
        return found

    # --- files -------------------------------------------------------------------------------

    def _load(self, path: Path) -> bytes | None:
        try:
            with path.open("rb", buffering=0) as file:
                data = file.readall()
                used = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        content, check_sum = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
        if zlib.crc32(content).to_bytes(_SUM_BYTES, "big") != check_sum:
            _log.warning("the block %s of the cache of ranges is damaged: it is read again", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if time.time() - used > _USED_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def _store(self, path: Path, content: bytes) -> None:
        unfinished = path.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.write(zlib.crc32(content).to_bytes(_SUM_BYTES, "big"))
            unfinished.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            if not self._is_full:
                _log.warning("the cache of ranges %s takes no more blocks: %s", self.folder, error)
                self._is_full = True
            return
        self._is_full = False
        self._written += len(content) + _SUM_BYTES
        if self._written * _SHARE_OF_LIMIT > self.limit:
            self._written = 0
            self.shrink()

    def shrink(self) -> None:
        """Delete the blocks that were read longest ago, unless another process does so now."""
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._shrink()
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)

    def _shrink(self) -> None:
        blocks = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                age = time.time() - status.st_mtime
                if path.name.startswith(_UNFINISHED) and age > _UNFINISHED_SECONDS:
                    path.unlink()  # of a process that was killed
                else:
                    blocks.append((status.st_mtime, status.st_size, path))
        used = sum(size for _, size, _ in blocks)
        for _, size, path in sorted(blocks):
            if used <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            used -= size


def _length(size: int, block: int) -> int:
    return min(BLOCK, size - block * BLOCK)
