"""The objects of a store in memory, with the methods of boto3's client that `S3FileSystem` calls.

A request through boto3 and moto costs 5 ms. Tests that break off at every one of thousands of requests take
this client instead; `tests/framework/io/test_s3_memory.py` holds its answers to those of boto3 and moto.
"""

# ruff: noqa: N803 - boto3's names of arguments

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

_STATUS = {"NoSuchKey": 404, "404": 404, "NoSuchUpload": 404, "PreconditionFailed": 412, "InvalidRange": 416}


@dataclass
class _Object:
    data: bytes
    metadata: dict[str, str]
    modified: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


class MemoryClient:
    """A client whose store is this object; every bucket exists. One thread at a time."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], _Object] = {}
        self._uploads: dict[str, tuple[dict[str, str], dict[int, bytes]]] = {}

    # --- objects ---------------------------------------------------------------------------------

    def get_object(self, Bucket: str, Key: str, Range: str | None = None) -> dict[str, Any]:
        found = self._find("GetObject", "NoSuchKey", Bucket, Key)
        if Range is None or not found.data:  # moto answers with the whole of an empty object
            return {"Body": io.BytesIO(found.data), "ContentLength": len(found.data)}
        start, end = _span(Range, len(found.data))
        if start >= end:
            raise _error("GetObject", "InvalidRange")
        total = len(found.data)
        return {
            "Body": io.BytesIO(found.data[start:end]),
            "ContentLength": end - start,
            "ContentRange": f"bytes {start}-{end - 1}/{total}",
        }

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        found = self._find("HeadObject", "404", Bucket, Key)
        return {
            "ContentLength": len(found.data),
            "LastModified": found.modified,
            "Metadata": dict(found.metadata),
        }

    def put_object(
        self,
        Bucket: str,
        Key: str,
        Body: bytes,
        Metadata: dict[str, str] | None = None,
        IfNoneMatch: str | None = None,
    ) -> dict[str, Any]:
        self._refuse_existing("PutObject", Bucket, Key, IfNoneMatch)
        self._objects[Bucket, Key] = _Object(bytes(Body), dict(Metadata or {}))
        return {"ETag": _tag(Body)}

    def delete_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        self._objects.pop((Bucket, Key), None)
        return {}

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:
        for each in Delete["Objects"]:
            self._objects.pop((Bucket, each["Key"]), None)
        return {}

    # --- lists -----------------------------------------------------------------------------------

    def list_objects_v2(
        self,
        Bucket: str,
        Prefix: str = "",
        Delimiter: str = "",
        MaxKeys: int = 1000,
    ) -> dict[str, Any]:
        return next(self._pages(Bucket, Prefix, Delimiter, MaxKeys))

    def get_paginator(self, kind: str) -> _Pages:
        assert kind == "list_objects_v2"
        return _Pages(self)

    def _pages(self, bucket: str, prefix: str, delimiter: str, size: int) -> Iterator[dict[str, Any]]:
        keys = sorted(key for at, key in self._objects if at == bucket and key.startswith(prefix))
        folders: dict[str, None] = {}
        contents = []
        for key in keys:
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                contents.append(key)
        entries = sorted([*folders, *contents])
        for start in range(0, max(len(entries), 1), size):
            chosen = entries[start : start + size]
            page: dict[str, Any] = {"KeyCount": len(chosen)}
            if listed := [self._entry(bucket, key) for key in chosen if key not in folders]:
                page["Contents"] = listed
            if prefixes := [{"Prefix": key} for key in chosen if key in folders]:
                page["CommonPrefixes"] = prefixes
            yield page

    def _entry(self, bucket: str, key: str) -> dict[str, Any]:
        found = self._objects[bucket, key]
        return {"Key": key, "Size": len(found.data), "LastModified": found.modified}

    # --- uploads in parts ------------------------------------------------------------------------

    def create_multipart_upload(
        self,
        Bucket: str,
        Key: str,
        Metadata: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        upload = uuid.uuid4().hex
        self._uploads[upload] = dict(Metadata or {}), {}
        return {"UploadId": upload}

    def upload_part(
        self,
        Bucket: str,
        Key: str,
        UploadId: str,
        PartNumber: int,
        Body: bytes,
    ) -> dict[str, Any]:
        if UploadId not in self._uploads:
            raise _error("UploadPart", "NoSuchUpload")
        self._uploads[UploadId][1][PartNumber] = bytes(Body)
        return {"ETag": _tag(Body)}

    def complete_multipart_upload(
        self,
        Bucket: str,
        Key: str,
        UploadId: str,
        MultipartUpload: dict[str, Any],
        IfNoneMatch: str | None = None,
    ) -> dict[str, Any]:
        self._refuse_existing("CompleteMultipartUpload", Bucket, Key, IfNoneMatch)
        if UploadId not in self._uploads:
            raise _error("CompleteMultipartUpload", "NoSuchUpload")
        metadata, parts = self._uploads.pop(UploadId)
        data = b"".join(parts[each["PartNumber"]] for each in MultipartUpload["Parts"])
        self._objects[Bucket, Key] = _Object(data, metadata)
        return {"ETag": _tag(data)}

    def abort_multipart_upload(self, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        if self._uploads.pop(UploadId, None) is None:
            raise _error("AbortMultipartUpload", "NoSuchUpload")
        return {}

    # --- errors ----------------------------------------------------------------------------------

    def _find(self, operation: str, code: str, bucket: str, key: str) -> _Object:
        found = self._objects.get((bucket, key))
        if found is None:
            raise _error(operation, code)
        return found

    def _refuse_existing(self, operation: str, bucket: str, key: str, condition: str | None) -> None:
        if condition is not None and (bucket, key) in self._objects:
            raise _error(operation, "PreconditionFailed")


class _Pages:
    def __init__(self, client: MemoryClient) -> None:
        self._client = client

    def paginate(self, Bucket: str, Prefix: str = "", Delimiter: str = "") -> Iterator[dict[str, Any]]:
        return self._client._pages(Bucket, Prefix, Delimiter, 1000)


def _error(operation: str, code: str) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": _STATUS[code]}}
    return ClientError(answer, operation)


def _span(text: str, size: int) -> tuple[int, int]:
    first, _, last = text.removeprefix("bytes=").partition("-")
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
