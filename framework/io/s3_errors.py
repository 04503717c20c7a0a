"""Errors of an S3-compatible store, translated to those of local files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockgate.errors import InputError, StorageDeniedError, StorageError, UnsupportedError

_MISSING = {"404", "NoSuchKey", "NotFound", "NoSuchUpload"}
_DENIED = {"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"}
_EXISTS = {"412", "PreconditionFailed"}
_NOT_IMPLEMENTED = {"501", "NotImplemented"}
CONFLICT = {"409", "ConditionalRequestConflict", "OperationAborted"}


class UncertainWriteError(StorageError):
    """Raised if a write has an unknown outcome; it may also happen later."""


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Translate boto3's errors about `address` to FileNotFoundError, FileExistsError or StorageError.

    UnsupportedError for a request that the store does not implement, InputError where there are no
    credentials.
    Messages name the address and the store's code, never the secret that signed a request.
    """
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        NoCredentialsError,
        PartialCredentialsError,
    )

    try:
        yield
    except ClientError as error:
        raise _of_answer(error, address) from None
    except (NoCredentialsError, PartialCredentialsError):
        raise InputError(
            f"there are no credentials for {address}: set fs.s3a.access.key and fs.s3a.secret.key, or "
            "credentials that boto3 finds (environment, profile, role)"
        ) from None
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        raise StorageError(
            f"{address} cannot be reached ({type(error).__name__}): check the network and fs.s3a.endpoint"
        ) from None
    except HTTPClientError as error:
        raise UncertainWriteError(f"{address}: the connection broke: {type(error).__name__}") from None
    except BotoCoreError as error:
        raise StorageError(f"{address}: {type(error).__name__}: {error}") from None


def code_of(error: Any) -> str:
    """Return the error code of a store, such as `NoSuchKey`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _of_answer(error: Any, address: str) -> Exception:
    code = code_of(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code == "NoSuchBucket":
        return FileNotFoundError(f"there is no bucket for {address}: create it first")
    if code in _MISSING:
        return FileNotFoundError(f"{address} does not exist")
    if code in _EXISTS:
        return FileExistsError(f"{address} exists")
    if code in _DENIED:
        return StorageDeniedError(f"{address}: the store denied {error.operation_name} ({code})")
    if code in _NOT_IMPLEMENTED:
        return UnsupportedError(f"{address}: the store does not implement {error.operation_name} as asked")
    message = f"{address}: {error.operation_name} failed: {code or status}"
    return UncertainWriteError(message) if status >= 500 else StorageError(message)
