"""Files: one interface over the local disk and whatever fsspec reaches."""

from lockgate.framework.io.filesystem import FileInfo, FileSystem
from lockgate.framework.io.local import LocalFileSystem
from lockgate.framework.io.resolve import join, resolve

__all__ = ["FileInfo", "FileSystem", "LocalFileSystem", "join", "resolve"]
