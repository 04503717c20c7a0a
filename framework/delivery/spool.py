"""A spool: lines that are on this host's disk until their destination has them.

Lines are in files, in a folder that only this user can enter. Each process holds a lock on the file that it
writes to. So a later process takes over the files of processes that were killed, and only those.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockgate.framework.delivery.appended_lines import Line, append_lines, bytes_of, write_whole
from lockgate.framework.io import check_private_folder, make_private_folder, open_private_file

_SUFFIX = ".jsonl"
# Beside it are files of lines that it had no room for, `refused-<name>.json`.
REFUSED = "refused.json"


@dataclass(frozen=True)
class SpoolFile:
    """A file that is due: its lines, and how many of its lines are damaged."""

    number: int
    path: Path
    lines: list[Line]
    damaged: int

    def reduce(self, lines: Sequence[Line]) -> Path:
        """Let the file hold some of its lines alone, in the room that it has, and return its new path."""
        data = bytes_of(lines)
        os.lseek(self.number, 0, os.SEEK_SET)
        write_whole(self.number, data)
        os.ftruncate(self.number, len(data))
        os.fsync(self.number)
        return self.path.rename(self.path.with_name(f"refused-{self.path.stem}.json"))

    def remove(self) -> None:
        """Remove the file, which is delivered."""
        self.path.unlink(missing_ok=True)


class Spool:
    """Lines of one destination, in files of at most `file_bytes` each and `most_bytes` together."""

    def __init__(self, folder: Path, *, most_bytes: int, file_bytes: int = 4 << 20) -> None:
        """Make the folder, or check it; raises UnsafePathError if it could be another user's."""
        self._folder = make_private_folder(folder)
        self._most, self._file_bytes = most_bytes, file_bytes
        self._open: tuple[int, Path] | None = None
        self._size = 0

    def add(self, lines: Sequence[Line]) -> int:
        """Keep lines on the disk, and return how many of them fit; raises OSError if none can be kept."""
        check_private_folder(self._folder)
        if self._open is None or self._size > self._file_bytes:
            self.cut()
            room = self._most - sum(size for _, size in self._files())
            if room <= 0:
                return 0
            self._open, self._size = self._made(), 0
        self._size = append_lines(self._open[0], lines, to_disk=True)
        return len(lines)

    def cut(self) -> None:
        """End the file at hand, so that it can be delivered."""
        if self._open is not None:
            os.close(self._open[0])
            self._open = None

    @contextmanager
    def oldest(self) -> Iterator[SpoolFile | None]:
        """Hold a file that nobody writes to and no other process delivers; None if there is none."""
        check_private_folder(self._folder)
        for path, _ in self._files():
            try:
                number = open_private_file(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            with os.fdopen(number, "r+b") as file:
                if _is_locked(number):
                    yield SpoolFile(number, path, *_parsed(file.read()))
                    return
        yield None

    def set_aside(self, due: SpoolFile, lines: Sequence[Line]) -> Path | None:
        """Keep lines of a file that the destination refuses; None if there is no room for more of them."""
        size = sum(each.stat().st_size for each in self._folder.glob("refused*.json"))
        if size + len(bytes_of(lines)) > self._most:
            return None
        path = self._folder / REFUSED
        number = open_private_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            append_lines(number, lines, to_disk=True)
        except OSError:  # a full disk: the accepted lines of the file are not to come again
            return due.reduce(lines)
        finally:
            os.close(number)
        return path

    def _made(self) -> tuple[int, Path]:
        while True:
            # Names in the order of their making.
            path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}{_SUFFIX}"
            number = open_private_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            fcntl.flock(number, fcntl.LOCK_EX)
            # Before it was locked, a process could take the empty file for one that is due, and remove it.
            if os.fstat(number).st_nlink:
                return number, path
            os.close(number)

    def _files(self) -> list[tuple[Path, int]]:
        found = []
        for each in self._folder.iterdir():
            if each.suffix == _SUFFIX:
                try:
                    found.append((each, each.stat().st_size))
                except FileNotFoundError:
                    continue
        return sorted(found)


def _is_locked(number: int) -> bool:
    """Lock an open file if it is due: nobody else has it, and nobody removed it since it was opened."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(number).st_nlink > 0


def _parsed(data: bytes) -> tuple[list[Line], int]:
    lines, damaged = list[Line](), 0
    for text in data.split(b"\n"):
        try:
            line = json.loads(text) if text else None
        except ValueError:
            damaged += 1  # the last line of a process that was killed while it wrote
            continue
        if isinstance(line, dict):
            lines.append(line)
        else:
            damaged += line is not None
    return lines, damaged
