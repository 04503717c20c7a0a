"""Blocks of remote files on a local disk, shared by the processes of one user.

Table files with a UUID in the name never change. So the key of a block is the address and the length of its
file and its number, and nothing is ever invalidated. A block is written under a temporary name and renamed,
so it is complete or absent. Its checksum is read with it, and a damaged block counts as absent.

Blocks hold the bytes of the store: encrypted columns stay encrypted. Other users cannot open the folder.

The Java implementation is `io.lockgate.spark.files.io.RangeCache`; both pass the cases in
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
"""Size of a block in bytes; the last block of a file may be shorter."""

Fetch = Callable[[Sequence[tuple[int, int]]], Sequence[bytes]]
"""Returns the bytes of some ranges (offset, length) of a remote file."""

_CHECKSUM_BYTES = 4
_SIZE = "size"
_TEMPORARY = "tmp-"
_LOCK = "lock"
_TEMPORARY_SECONDS = 3600
_TOUCH_SECONDS = 60
# Each process checks the size of the folder after it has written this share (1/16) of the limit.
_SHARE_OF_LIMIT = 16


class RangeCache:
    """A folder of about `limit` bytes of blocks; the least recently read ones are deleted."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Create or check the folder; UnsafePathError if it may be another user's."""
        self.folder = make_private_folder(folder, "choose another fs.lockgate.cache.folder")
        self.limit = limit
        self._written = 0
        self._is_full = False

    def path_of(self, address: str, size: int | None, block: int | str) -> Path:
        """Return the path of a block, or of the stored length of a remote file if `size` is None."""
        text = f"{address}\0{'' if size is None else size}\0{block}"
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.folder / name[:2] / name

    def size(self, address: str) -> int | None:
        """Return the length of a remote file, None if it is not cached."""
        data = self._load(self.path_of(address, None, _SIZE))
        return None if data is None else int.from_bytes(data, "big")

    def note_size(self, address: str, size: int) -> None:
        """Store the length of a remote file."""
        self._store(self.path_of(address, None, _SIZE), size.to_bytes(8, "big"))

    def blocks(self, address: str, size: int, numbers: Iterable[int], fetch: Fetch) -> dict[int, bytes]:
        """Return blocks of a remote file of `size` bytes by number; one request fetches adjacent blocks."""
        blocks: dict[int, bytes] = {}
        missing: list[list[int]] = []
        for block in sorted(set(numbers)):
            data = self._load(self.path_of(address, size, block))
            if data is not None and len(data) == _length(size, block):
                blocks[block] = data
            elif missing and missing[-1][-1] == block - 1:
                missing[-1].append(block)
            else:
                missing.append([block])
        if not missing:
            return blocks
        ranges = [(run[0] * BLOCK, sum(_length(size, block) for block in run)) for run in missing]
        for run, data in zip(missing, fetch(ranges), strict=True):
            for number, block in enumerate(run):
                part = bytes(data[number * BLOCK : number * BLOCK + _length(size, block)])
                blocks[block] = part
                if len(part) == _length(size, block):  # a truncated file is not cached
                    self._store(self.path_of(address, size, block), part)
        return blocks

    # --- files -------------------------------------------------------------------------------

    def _load(self, path: Path) -> bytes | None:
        try:
            with path.open("rb", buffering=0) as file:
                data = file.readall()
                last_read = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        content, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
            _log.warning("the block %s of the cache of ranges is damaged: it is read again", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if time.time() - last_read > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def _store(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.write(zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big"))
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            if not self._is_full:
                _log.warning("the cache of ranges %s takes no more blocks: %s", self.folder, error)
                self._is_full = True
            return
        self._is_full = False
        self._written += len(content) + _CHECKSUM_BYTES
        if self._written * _SHARE_OF_LIMIT > self.limit:
            self._written = 0
            self.shrink()

    def shrink(self) -> None:
        """Delete the least recently read blocks, unless another process is deleting some."""
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
                if path.name.startswith(_TEMPORARY) and age > _TEMPORARY_SECONDS:
                    path.unlink()  # left by a killed process
                else:
                    blocks.append((status.st_mtime, status.st_size, path))
        total_size = sum(size for _, size, _ in blocks)
        for _, size, path in sorted(blocks):
            if total_size <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total_size -= size


def _length(size: int, block: int) -> int:
    return min(BLOCK, size - block * BLOCK)
