"""Resolution of addresses to file systems."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lockgate.errors import InputError
from lockgate.framework.io.cache.cached_files import CachedFileSystem, split_options
from lockgate.framework.io.cache.range_cache import RangeCache
from lockgate.framework.io.filesystem import FileSystem, without_user
from lockgate.framework.io.local import LocalFileSystem
from lockgate.framework.io.remote import FsspecFileSystem
from lockgate.framework.io.s3 import S3FileSystem
from lockgate.framework.io.s3_settings import SCHEMES, S3Settings


def resolve(
    location: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> tuple[FileSystem, str]:
    """Return the file system of a path or URI and the path in it, absolute and without a scheme.

    A path without a scheme is local. `s3://bucket/path` and `s3a://` are synonyms; `options` are Hadoop's
    confs `fs.s3a.*` for it (see `S3Settings.of`), those of HDFS for `hdfs://host/path`, and go to the fsspec
    implementation of another scheme. `fs.lockgate.cache.folder` caches ranges of remote files, except
    those of HDFS, on this machine (see `cached_files`). Raises InputError if the scheme is unknown or a
    package for it is not installed, OptionError for malformed options.
    """
    text = checked_address(location)
    scheme = urlsplit(text).scheme if "://" in text or text.startswith("file:") else ""
    if scheme in ("", "file", "local"):
        path = unquote(urlsplit(text).path) if scheme else os.path.expanduser(text)  # noqa: PTH111 - a string is returned
        return LocalFileSystem(), os.path.abspath(path)  # noqa: PTH100 - links stay as they are
    # Files of HDFS are not cached, because its data nodes are near.
    cache, others = split_options(options or {})
    if scheme in SCHEMES:
        return _cached(_s3(text, others), cache)
    if scheme == "hdfs":
        # Imported on first use: pyarrow's file systems load slowly, and most tables are not in HDFS.
        from lockgate.framework.io.hdfs import HdfsFileSystem

        return HdfsFileSystem.of(text, others)
    try:
        file_system = FsspecFileSystem(scheme, others)
    except (ImportError, ValueError) as error:
        raise InputError(f"{without_user(text)} cannot be reached: {error}") from error
    return _cached((file_system, file_system.strip(text)), cache)


def checked_address(location: str | os.PathLike[str]) -> str:
    """Return the text of an address; InputError for a value that is no address."""
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InputError(f"a path or an address such as s3://bucket/path is required, not {location!r}")
    return text


def absolute_address(location: str | os.PathLike[str]) -> str:
    """Return an address that stays the same if the process changes its folder: a local path is absolute."""
    text = checked_address(location)
    if "://" in text or text.startswith("file:"):
        return text
    return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - links stay as they are


def _cached(resolved: tuple[FileSystem, str], cache: RangeCache | None) -> tuple[FileSystem, str]:
    return resolved if cache is None else (CachedFileSystem(resolved[0], cache), resolved[1])


def _s3(text: str, options: Mapping[str, str]) -> tuple[FileSystem, str]:
    # Not parsed as a URI: keys may hold `?`, `#` and `%`.
    bucket, _, key = text.partition("://")[2].partition("/")
    if not bucket or "@" in bucket:
        raise InputError(
            "an address in S3 is s3://bucket/path, without a user; keys are options (fs.s3a.access.key)"
        )
    if importlib.util.find_spec("boto3") is None:
        raise InputError(
            f"{text} is reached by boto3, which is not installed; run: pip install 'lockgate[s3]'"
        )
    key = "/".join(part for part in key.split("/") if part)
    return S3FileSystem(bucket, S3Settings.of(options, bucket)), f"{bucket}/{key}" if key else bucket


def join(*parts: str) -> str:
    """Join the parts of a path with `/`."""
    first, *others = parts
    return "/".join([first.rstrip("/"), *(part.strip("/") for part in others if part)])
