"""A connection to HDFS that is one to the local disk: pyarrow's files, and renaming that replaces nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pyarrow import fs


class OnDisk:
    """The local disk as a name node; without `answers` renames happen, and nobody is told."""

    def __init__(self, *, answers: bool = True) -> None:
        self.files = fs.LocalFileSystem()
        self._answers = answers

    def rename(self, path: str, target: str) -> bool:
        """Give a file another name; False if it did not get it, or if that is not known."""
        with suppress(OSError):
            Path(target).hardlink_to(path)
            Path(path).unlink()
            return self._answers
        return False
