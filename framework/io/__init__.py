"""Files: one interface over the local disk, S3-compatible stores and whatever fsspec reaches."""

from lockgate.framework.io.addresses import join, resolve
from lockgate.framework.io.filesystem import FileInfo, FileSystem, FollowsLinks, MovesFolders
from lockgate.framework.io.local import LocalFileSystem
from lockgate.framework.io.s3 import S3FileSystem
from lockgate.framework.io.s3_settings import is_s3, storage_confs

__all__ = [
    "FileInfo",
    "FileSystem",
    "FollowsLinks",
    "LocalFileSystem",
    "MovesFolders",
    "S3FileSystem",
    "is_s3",
    "join",
    "resolve",
    "storage_confs",
]
