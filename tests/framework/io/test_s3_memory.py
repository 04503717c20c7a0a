"""The in-memory client, which simulates failures, answers as boto3 and moto do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from s3_memory import MemoryClient
from s3_server import S3Server

from lockgate.framework.io import S3FileSystem, resolve

NEW: dict[str, Any] = {"IfNoneMatch": "*", "Metadata": {"lockgate-write": "a"}}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("head_object", {"Key": "a/1"}),
    ("get_object", {"Key": "a/1"}),
    ("put_object", {"Key": "a/1", "Body": b"0123456789", **NEW}),
    ("put_object", {"Key": "a/1", "Body": b"other", **NEW}),
    ("head_object", {"Key": "a/1"}),
    ("get_object", {"Key": "a/1"}),
    ("get_object", {"Key": "a/1", "Range": "bytes=2-4"}),
    ("get_object", {"Key": "a/1", "Range": "bytes=-3"}),
    ("get_object", {"Key": "a/1", "Range": "bytes=-65536"}),
    ("get_object", {"Key": "a/1", "Range": "bytes=8-99"}),
    ("put_object", {"Key": "a/1", "Body": b"replaced"}),
    ("get_object", {"Key": "a/1"}),
    ("head_object", {"Key": "a/1"}),
    ("put_object", {"Key": "empty", "Body": b""}),
    ("get_object", {"Key": "empty"}),
    ("get_object", {"Key": "empty", "Range": "bytes=-65536"}),
    ("put_object", {"Key": "a/b/", "Body": b""}),
    ("put_object", {"Key": "a/b/c/2", "Body": b"2"}),
    ("put_object", {"Key": "a/z", "Body": b"z"}),
    ("put_object", {"Key": "ab", "Body": b"ab"}),
    ("list_objects_v2", {"Prefix": "a/", "Delimiter": "/"}),
    ("list_objects_v2", {"Prefix": "a/"}),
    ("list_objects_v2", {"Prefix": ""}),
    ("list_objects_v2", {"Prefix": "a/", "MaxKeys": 1}),
    ("list_objects_v2", {"Prefix": "nothing/"}),
    ("paginate", {"Prefix": "a/", "Delimiter": "/"}),
    ("paginate", {"Prefix": "nothing/", "Delimiter": "/"}),
    ("delete_object", {"Key": "a/z"}),
    ("delete_object", {"Key": "a/z"}),
    ("head_object", {"Key": "a/z"}),
    ("delete_objects", {"Delete": {"Objects": [{"Key": "ab"}, {"Key": "never"}], "Quiet": True}}),
    ("paginate", {"Prefix": ""}),
]


def comparable(answer: Any) -> Any:
    """The parts of an answer that `S3FileSystem` reads, without dates."""
    if "Body" in answer:
        return answer["Body"].read(), str(answer.get("ContentRange", ""))
    if "ContentLength" in answer:
        return answer["ContentLength"], answer["Metadata"]
    if "KeyCount" in answer:
        files = [(each["Key"], each["Size"]) for each in answer.get("Contents", ())]
        return files, [each["Prefix"] for each in answer.get("CommonPrefixes", ())]
    return answer.get("ETag"), bool(answer.get("Errors"))


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return comparable(ask())
    except ClientError as error:
        details: Any = error.response
        return error.operation_name, details["Error"]["Code"], details["ResponseMetadata"]["HTTPStatusCode"]


@pytest.fixture
def clients(s3: S3Server, bucket: str) -> list[Any]:
    files, _ = resolve(f"s3://{bucket}/x", s3.options())
    assert isinstance(files, S3FileSystem)
    return [files._client, MemoryClient()]


def test_each_request_has_the_same_answer(clients: list[Any], bucket: str) -> None:
    for name, request in REQUESTS:

        def ask(client: Any, name: str = name, request: dict[str, Any] = request) -> Any:
            if name == "paginate":
                pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, **request)
                return {"ETag": [comparable(page) for page in pages]}
            return getattr(client, name)(Bucket=bucket, **request)

        real, memory = (outcome(lambda client=client: ask(client)) for client in clients)  # type: ignore[misc]  # of the loop
        assert memory == real, (name, request)


def test_multipart_uploads_have_the_same_answers(clients: list[Any], bucket: str) -> None:
    first, second = bytes(5 * 2**20), b"the end"

    def upload(client: Any, *, again: bool) -> list[Any]:
        where = {"Bucket": bucket, "Key": "large"}
        begun = {
            **where,
            "UploadId": client.create_multipart_upload(**where, Metadata={"m": "1"})["UploadId"],
        }
        parts = []
        for number, data in ((1, first), (2, second)):
            sent = client.upload_part(**begun, PartNumber=number, Body=data)
            parts.append({"PartNumber": number, "ETag": sent["ETag"]})
        done = {**begun, "MultipartUpload": {"Parts": parts}, "IfNoneMatch": "*"}

        def complete() -> Any:
            client.complete_multipart_upload(**done)
            return {}

        answers = [outcome(complete), outcome(lambda: client.head_object(**where))]
        if again:
            answers.append(outcome(lambda: client.upload_part(**begun, PartNumber=3, Body=b"late")))
            answers.append(outcome(lambda: client.abort_multipart_upload(**begun)))
        return answers

    for again in (False, True):
        real, memory = (upload(client, again=again) for client in clients)
        assert memory == real
