"""A bucket of an S3-compatible store, through boto3.

Commits rest on conditional writes (`If-None-Match: *`): if several writers create an object, the store lets
exactly one succeed. S3 has had them since August 2024. A store that ignores them would silently lose
commits, so each bucket is tested before the first exclusive write, and refused if it fails.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.io.filesystem import FileInfo
from lockgate.framework.io.limits import checked_size, most_metadata
from lockgate.framework.io.local import TEMPORARY_PREFIX
from lockgate.framework.io.s3_errors import CONFLICT, UncertainWriteError, code_of, translated
from lockgate.framework.io.s3_files import S3Input, S3Output
from lockgate.framework.io.s3_settings import S3Settings

# The metadata key with the id of a write, so that a repeated request recognizes its own object.
_WRITER = "lockgate-write"
_CONFLICT_RETRIES = 5
_ANY: Any = "*"

_checked_locations: set[tuple[str | None, str]] = set()


class S3FileSystem:
    """The objects of one bucket; see `FileSystem` for what each method promises.

    A path is `bucket/key`. Folders are the parts of keys before a `/`; an empty folder is an empty object
    whose key ends with `/`, as in Hadoop.
    """

    def __init__(self, bucket: str, settings: S3Settings) -> None:
        self.bucket = bucket
        self._settings = settings
        self._write_encryption: Mapping[str, Any] = settings.encryption.of_writes
        self._customer_key: Mapping[str, Any] = settings.encryption.of_all
        self._lock = threading.Lock()
        self._made: tuple[int, Any] | None = None
        # Paths whose creation has an unknown outcome.
        self._uncertain: set[str] = set()
        # The write id of each multipart upload.
        self._uploads: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"S3FileSystem({self.bucket!r}, endpoint={self._settings.endpoint!r})"

    # --- reading -----------------------------------------------------------------------------

    def read_bytes(self, path: str) -> bytes:
        try:
            with self._errors_of(path):
                body = self._client.get_object(Bucket=self.bucket, Key=self._key(path), **self._customer_key)[
                    "Body"
                ]
                return checked_size(cast("bytes", body.read(most_metadata() + 1)), path)
        except FileNotFoundError:
            if path in self._uncertain:
                raise UncertainWriteError(
                    f"{self.uri(path)} may still appear: a write of it was interrupted"
                ) from None
            raise

    def open_input(self, path: str) -> BinaryIO:
        """Open an object; one request brings its size and its end."""
        return cast("BinaryIO", S3Input(lambda span: self._range(path, span)))

    def _range(self, path: str, span: str) -> tuple[bytes, int]:
        from botocore.exceptions import ClientError

        with self._errors_of(path):
            try:
                answer = self._client.get_object(
                    Bucket=self.bucket, Key=self._key(path), Range=span, **self._customer_key
                )
            except ClientError as error:
                if code_of(error) in ("InvalidRange", "416"):  # of an empty object
                    return b"", 0
                raise
            data = cast("bytes", answer["Body"].read())
        # A store may answer with the complete object, without a range.
        total = str(answer.get("ContentRange", "")).rpartition("/")[2]
        return data, int(total) if total.isdecimal() else len(data)

    def list(self, path: str) -> list[FileInfo]:
        prefix = self._folder_key(path)
        found = []
        for page in self._pages(path, prefix, Delimiter="/"):
            for each in page.get("CommonPrefixes", ()):
                found.append(FileInfo(f"{self.bucket}/{each['Prefix'].rstrip('/')}", 0, True, 0))
            for each in page.get("Contents", ()):
                if each["Key"] != prefix:
                    millis = int(each["LastModified"].timestamp() * 1000)
                    found.append(FileInfo(f"{self.bucket}/{each['Key']}", int(each["Size"]), False, millis))
        return found

    def exists(self, path: str) -> bool:
        if self._key(path):
            with suppress(FileNotFoundError):
                self._head(path)
                return True
        with self._errors_of(path):
            answer = self._client.list_objects_v2(
                Bucket=self.bucket, Prefix=self._folder_key(path), MaxKeys=1
            )
        return bool(answer.get("Contents")) or not self._key(path)

    def size(self, path: str) -> int:
        return int(self._head(path)["ContentLength"])

    def uri(self, path: str) -> str:
        """Return the address under the scheme that Hadoop knows, as its `Path` takes it: not escaped."""
        return f"s3a://{path}"

    # --- writing -----------------------------------------------------------------------------

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        output = S3Output(self, path)
        try:
            yield cast("BinaryIO", output)
            output.complete()
        except BaseException:
            with suppress(OSError):  # keep the first error; a lifecycle rule of the store removes old parts
                output.give_up()
            raise

    def write_new(self, path: str, data: bytes) -> None:
        self._check_conditional_writes(path)
        self._put_new(path, data)

    def write_atomic(self, path: str, data: bytes) -> None:
        with self._errors_of(path):
            self._client.put_object(
                Bucket=self.bucket, Key=self._key(path), Body=data, **self._write_encryption
            )

    def make_directory(self, path: str) -> None:
        if self._key(path):
            with self._errors_of(path):
                self._client.put_object(
                    Bucket=self.bucket, Key=self._folder_key(path), Body=b"", **self._write_encryption
                )

    def delete(self, path: str) -> bool:
        try:
            # S3 does not report whether the object existed.
            self._head(path)
        except FileNotFoundError:
            return False
        with self._errors_of(path):
            self._client.delete_object(Bucket=self.bucket, Key=self._key(path))
        return True

    def delete_tree(self, path: str) -> None:
        for page in self._pages(path, self._folder_key(path)):
            keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if not keys:
                continue
            with self._errors_of(path):
                answer = self._client.delete_objects(
                    Bucket=self.bucket, Delete={"Objects": keys, "Quiet": True}
                )
            if answer.get("Errors"):
                first = answer["Errors"][0]
                raise OSError(f"{self.uri(path)}: {first.get('Key')} was not deleted: {first.get('Code')}")

    # --- exclusive creation ------------------------------------------------------------------

    def _put_new(self, path: str, data: bytes) -> None:
        token = uuid.uuid4().hex
        request = {"Key": self._key(path), "Body": data, "Metadata": {_WRITER: token}, "IfNoneMatch": _ANY}
        request |= self._write_encryption
        self._create(path, token, lambda: self._client.put_object(Bucket=self.bucket, **request))

    def _create(self, path: str, token: str, send: Any) -> None:
        """Make a conditional request; if an object exists, check whether this write created it."""
        try:
            self._send_until_decided(path, send)
        except (FileExistsError, FileNotFoundError):
            # This write may have created it: boto3 repeats a request without an answer, and then finds the
            # object, or no upload any more.
            if not self._is_written_by(path, token):
                raise
        except UncertainWriteError:
            if not self._is_surely_written_by(path, token):
                self._uncertain.add(path)
                raise
        self._uncertain.discard(path)

    def _send_until_decided(self, path: str, send: Any) -> None:
        from botocore.exceptions import ClientError

        for attempt in range(_CONFLICT_RETRIES):
            with self._errors_of(path):
                try:
                    send()
                except ClientError as error:
                    if code_of(error) not in CONFLICT or attempt == _CONFLICT_RETRIES - 1:
                        raise
                    time.sleep(0.05 * 2**attempt)
                else:
                    return

    def _is_surely_written_by(self, path: str, token: str) -> bool:
        with suppress(OSError):
            return self._is_written_by(path, token)
        return False

    def _is_written_by(self, path: str, token: str) -> bool:
        try:
            return bool(self._head(path).get("Metadata", {}).get(_WRITER) == token)
        except FileNotFoundError:
            return False

    def _check_conditional_writes(self, path: str) -> None:
        """Refuse a store that ignores conditional writes, before it can lose data."""
        location = (self._settings.endpoint, self.bucket)
        if location in _checked_locations:
            return
        probe = f"{path.rpartition('/')[0]}/{TEMPORARY_PREFIX}probe.{uuid.uuid4().hex}.tmp"
        try:
            self._put_new(probe, b"")
            self._put_new(probe, b"")
        except FileExistsError:
            _checked_locations.add(location)
            return
        except UnsupportedError:
            pass
        finally:
            with suppress(OSError):
                self.delete(probe)
        raise UnsupportedError(
            f"s3://{self.bucket} at {self._settings.endpoint or 'AWS'} does not honour If-None-Match, so "
            "commits of two writers could replace each other: use a store with conditional writes, such "
            "as AWS S3 or a newer version of this one"
        )

    # --- uploads in parts --------------------------------------------------------------------

    def begin(self, path: str) -> str:
        """Begin an upload in parts and return its id."""
        self._check_conditional_writes(path)
        token = uuid.uuid4().hex
        with self._errors_of(path):
            answer = self._client.create_multipart_upload(
                Bucket=self.bucket, Key=self._key(path), Metadata={_WRITER: token}, **self._write_encryption
            )
        upload = str(answer["UploadId"])
        self._uploads[upload] = token
        return upload

    def put_part(self, path: str, upload: str, number: int, data: bytes) -> dict[str, Any]:
        """Send a part and return its entry for `complete`."""
        with self._errors_of(path):
            answer = self._client.upload_part(
                Bucket=self.bucket,
                Key=self._key(path),
                UploadId=upload,
                PartNumber=number,
                Body=data,
                **self._customer_key,
            )
        return {"PartNumber": number, "ETag": answer["ETag"]}

    def complete(self, path: str, upload: str, parts: Sequence[dict[str, Any]]) -> None:
        """Combine the parts into the object; FileExistsError if it exists."""
        request = {"Key": self._key(path), "UploadId": upload, "MultipartUpload": {"Parts": [*parts]}}
        self._create(
            path,
            self._uploads.pop(upload),
            lambda: self._client.complete_multipart_upload(Bucket=self.bucket, IfNoneMatch=_ANY, **request),
        )

    def give_up(self, path: str, upload: str) -> None:
        """Drop the parts of an upload."""
        self._uploads.pop(upload, None)
        with self._errors_of(path):
            self._client.abort_multipart_upload(Bucket=self.bucket, Key=self._key(path), UploadId=upload)

    # --- requests ----------------------------------------------------------------------------

    @property
    def _client(self) -> Any:
        # Connections must not be shared with a forked process.
        made = self._made
        if made is None or made[0] != os.getpid():
            with self._lock:
                made = self._made
                if made is None or made[0] != os.getpid():
                    made = self._made = (os.getpid(), make_client(self._settings))
        return made[1]

    def _errors_of(self, path: str) -> Any:
        return translated(self.uri(path))

    def _head(self, path: str) -> Mapping[str, Any]:
        with self._errors_of(path):
            return cast(
                "Mapping[str, Any]",
                self._client.head_object(Bucket=self.bucket, Key=self._key(path), **self._customer_key),
            )

    def _pages(self, path: str, prefix: str, **request: Any) -> Iterator[Mapping[str, Any]]:
        with self._errors_of(path):
            pages = self._client.get_paginator("list_objects_v2")
            yield from pages.paginate(Bucket=self.bucket, Prefix=prefix, **request)

    def _key(self, path: str) -> str:
        bucket, _, key = path.partition("/")
        if bucket != self.bucket:
            raise InputError(f"{path} is not in bucket {self.bucket!r}")
        return key.rstrip("/")

    def _folder_key(self, path: str) -> str:
        key = self._key(path)
        return f"{key}/" if key else ""


def make_client(settings: S3Settings) -> Any:
    """Make a boto3 client; ImportError if boto3 is not installed."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    config: dict[str, Any] = {
        "retries": {"max_attempts": 5, "mode": "standard"},
        "max_pool_connections": 16,
        "s3": {"addressing_style": "path" if settings.path_style else "auto"},
    }
    if settings.endpoint is not None:
        # Many stores do not support the newer checksums that boto3 adds by default.
        config |= {
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
    if settings.anonymous:
        config["signature_version"] = UNSIGNED
    if settings.proxy is not None:
        config["proxies"] = {"http": settings.proxy, "https": settings.proxy}
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
        region_name=settings.region,
    )
    client = session.client("s3", endpoint_url=settings.endpoint, config=Config(**config))
    if settings.requester_pays:
        client.meta.events.register("before-call.s3", _let_requester_pay)
    return client


def _let_requester_pay(params: dict[str, Any], **_: Any) -> None:
    params["headers"]["x-amz-request-payer"] = "requester"
