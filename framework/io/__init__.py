"""Files: one interface over the local disk, S3-compatible stores and whatever fsspec reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.io.addresses import absolute_address, join, resolve
from lockgate.framework.io.copies import link_or_copy
from lockgate.framework.io.filesystem import FileInfo, FileSystem, FollowsLinks, MovesFolders
from lockgate.framework.io.limits import LIMIT_VARIABLE, most_json, most_unpacked, too_large
from lockgate.framework.io.local import LocalFileSystem
from lockgate.framework.io.peer import is_own_peer
from lockgate.framework.io.private_folder import (
    check_own_folder,
    check_private_folder,
    check_private_socket,
    make_own_folder,
    make_private_folder,
    open_private_file,
)
from lockgate.framework.io.s3 import S3FileSystem
from lockgate.framework.io.s3_settings import is_s3, storage_confs
from lockgate.framework.io.storage_errors import errors_named, named_errors
from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.io.compression import snappy_size, unpack_deflate, unpack_zstandard
    from lockgate.framework.io.java_key_stores import (
        JavaKeyStore,
        KeyStoreError,
        is_java_key_store,
        read_key_store,
    )

__all__ = [
    "LIMIT_VARIABLE",
    "FileInfo",
    "FileSystem",
    "FollowsLinks",
    "JavaKeyStore",
    "KeyStoreError",
    "LocalFileSystem",
    "MovesFolders",
    "S3FileSystem",
    "absolute_address",
    "check_own_folder",
    "check_private_folder",
    "check_private_socket",
    "errors_named",
    "is_java_key_store",
    "is_own_peer",
    "is_s3",
    "join",
    "link_or_copy",
    "make_own_folder",
    "make_private_folder",
    "most_json",
    "most_unpacked",
    "named_errors",
    "open_private_file",
    "read_key_store",
    "resolve",
    "snappy_size",
    "storage_confs",
    "too_large",
    "unpack_deflate",
    "unpack_zstandard",
]

# Loaded when first asked for: compression needs Arrow.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".compression": "snappy_size unpack_deflate unpack_zstandard",
        ".java_key_stores": "JavaKeyStore KeyStoreError is_java_key_store read_key_store",
    },
)
