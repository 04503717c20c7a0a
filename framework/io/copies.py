"""Copies of files that never change, as hard links where possible."""

from __future__ import annotations

import os
from contextlib import ExitStack

from lockgate.framework.io.filesystem import FileSystem
from lockgate.framework.io.local import LocalFileSystem

_CHUNK = 8 * 2**20


def link_or_copy(source: FileSystem, path: str, target: FileSystem, new_path: str) -> None:
    """Copy a file, by a hard link if possible; data files never change, so two names can share one file."""
    if isinstance(source, LocalFileSystem) and isinstance(target, LocalFileSystem):
        target.make_directory(new_path.rpartition("/")[0])
        try:
            os.link(path, new_path)
        except FileExistsError:
            raise
        except OSError:
            pass  # another disk, or no hard links: copy
        else:
            return
    with ExitStack() as stack:
        input_file = stack.enter_context(source.open_input(path))
        output_file = stack.enter_context(target.create(new_path))
        while chunk := input_file.read(_CHUNK):
            output_file.write(chunk)
