"""Objects of an S3-compatible store: exclusive creation, lost answers, parts, ranges, refusals."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from s3_memory import MemoryClient
from s3_server import CREDENTIALS, S3Server

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.io import S3FileSystem, resolve
from lockgate.framework.io import s3 as s3_module
from lockgate.framework.io.s3_errors import UncertainWriteError
from lockgate.framework.io.s3_files import TAIL, S3Output

# Requests that need a customer's key.
OF_OBJECTS = {"put_object", "get_object", "head_object", "create_multipart_upload", "upload_part"}


@pytest.fixture
def files(s3: S3Server, bucket: str) -> S3FileSystem:
    found, _ = resolve(f"s3://{bucket}", s3.options())
    assert isinstance(found, S3FileSystem)
    return found


def create(endpoint: dict[str, str], path: str, number: int) -> bool:
    files, _ = resolve(f"s3://{path}", endpoint)
    try:
        files.write_new(path, str(number).encode() * 1000)
    except FileExistsError:
        return False
    return True


@pytest.mark.long
def test_exactly_one_of_many_creators_of_an_object_wins(s3: S3Server, bucket: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for prize in range(5):
            place = f"{bucket}/prize-{prize}"
            won = list(pool.map(lambda number: create(s3.options(), place, number), range(4)))  # noqa: B023 - called at once
            assert sum(won) == 1
            content = resolve(f"s3://{place}", s3.options())[0].read_bytes(place)
            assert content == str(won.index(True)).encode() * 1000


class FlakyClient:
    """A client whose calls of one operation fail, before or after the store executes the request."""

    def __init__(self, inner: Any, name: str, *, after: bool, times: int = 1) -> None:
        self._inner, self._name, self._after, self._times = inner, name, after, times

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        return (lambda **request: self._fail(call, request)) if name == self._name else call

    def _fail(self, call: Callable[..., Any], request: dict[str, Any]) -> Any:
        from botocore.exceptions import ConnectionClosedError

        if self._times == 0:
            return call(**request)
        self._times -= 1
        if self._after:
            call(**request)
        raise ConnectionClosedError(endpoint_url="http://store")


def flaky(files: S3FileSystem, name: str, **how: Any) -> None:
    pid, inner = files._made or (0, None)
    files._made = (pid, FlakyClient(inner, name, **how))


class RepeatingClient:
    """Sends each conditional write twice, as boto3 does after a lost answer."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put_object(self, **request: Any) -> Any:
        if "IfNoneMatch" in request:
            self._inner.put_object(**request)
        return self._inner.put_object(**request)


def test_a_repeated_write_recognizes_its_own_object(files: S3FileSystem, bucket: str) -> None:
    files.write_new(f"{bucket}/first", b"")
    assert files._made is not None
    files._made = (files._made[0], RepeatingClient(files._made[1]))
    files.write_new(f"{bucket}/x", b"own")
    assert files.read_bytes(f"{bucket}/x") == b"own"
    with pytest.raises(FileExistsError):
        files.write_new(f"{bucket}/first", b"another's")


def test_an_interrupted_write_has_an_unknown_outcome(files: S3FileSystem, bucket: str) -> None:
    files.write_new(f"{bucket}/first", b"")
    flaky(files, "put_object", after=False)
    with pytest.raises(UncertainWriteError, match="connection broke"):
        files.write_new(f"{bucket}/x", b"1")
    with pytest.raises(UncertainWriteError, match="may still appear"):
        files.read_bytes(f"{bucket}/x")
    files.write_new(f"{bucket}/x", b"2")
    assert files.read_bytes(f"{bucket}/x") == b"2"


def test_a_store_without_conditional_writes_is_refused(s3: S3Server, bucket: str) -> None:
    options = s3.options()
    files, path = resolve(f"s3://{bucket}/folder/x", options)
    s3.ignores_conditions = True
    try:
        for _ in range(2):
            with pytest.raises(UnsupportedError, match="does not honour If-None-Match") as raised:
                files.write_new(path, b"1")
    finally:
        s3.ignores_conditions = False
    assert CREDENTIALS["aws_secret_access_key"] not in str(raised.value)
    assert files.list(bucket) == []
    files.write_new(path, b"1")
    assert [info.name for info in files.list(f"{bucket}/folder")] == ["x"]


def test_large_objects_are_written_in_parts(files: S3FileSystem, s3: S3Server, bucket: str) -> None:
    path, size = f"{bucket}/large", 5 * 2**20
    data = random.Random(1).randbytes(2 * size + 1000)
    output = S3Output(files, path, part_size=size)
    for start in range(0, len(data), 999_999):
        output.write(data[start : start + 999_999])
    assert not files.exists(path)
    output.complete()
    assert files.read_bytes(path) == data
    assert sum("partNumber" in query for _, query in s3.requests) == 3
    late = S3Output(files, path, part_size=size)
    late.write(bytes(size))
    with pytest.raises(FileExistsError):
        late.complete()
    late.give_up()
    assert files.read_bytes(path) == data


@pytest.mark.parametrize(
    ("confs", "stored"),
    [
        ({"algorithm": "AES256"}, ("AES256", None)),
        ({"algorithm": "SSE-KMS", "key": "arn:aws:kms:us-east-1:1:key/k"}, ("aws:kms", "key/k")),
    ],
)
def test_the_store_encrypts_objects(
    s3: S3Server, bucket: str, confs: dict[str, str], stored: tuple[str, str | None]
) -> None:
    options = s3.options(**{f"fs.s3a.encryption.{name}": value for name, value in confs.items()})
    files, _ = resolve(f"s3://{bucket}", options)
    assert isinstance(files, S3FileSystem)
    files.write_new(f"{bucket}/new", b"1")
    files.write_atomic(f"{bucket}/atomic", b"1")
    files.make_directory(f"{bucket}/folder")
    output = S3Output(files, f"{bucket}/large", part_size=5 * 2**20)
    output.write(bytes(6 * 2**20))
    output.complete()
    client = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **CREDENTIALS)
    for key in ("new", "atomic", "folder/", "large"):
        head = client.head_object(Bucket=bucket, Key=key)
        assert head["ServerSideEncryption"] == stored[0], key
        assert stored[1] is None or head["SSEKMSKeyId"].endswith(stored[1]), key


def test_the_requester_pays_for_every_request_if_configured(s3: S3Server, bucket: str) -> None:
    for set_to, payer in (("true", "requester"), ("false", None)):
        files, _ = resolve(f"s3://{bucket}", s3.options(**{"fs.s3a.requester.pays.enabled": set_to}))
        s3.payers.clear()
        files.write_new(f"{bucket}/{set_to}", b"1")
        assert files.read_bytes(f"{bucket}/{set_to}") == b"1"
        assert [each.path for each in files.list(bucket)]
        files.delete(f"{bucket}/{set_to}")
        assert len(s3.payers) >= 4
        assert set(s3.payers) == {payer}


def test_requests_go_through_a_proxy(s3: S3Server, bucket: str) -> None:
    """The name of the store does not resolve; the proxy is the test server, which lacks the bucket."""
    host, _, port = s3.endpoint.removeprefix("http://").partition(":")
    proxy = {"fs.s3a.proxy.host": host, "fs.s3a.proxy.port": port}
    files, _ = resolve(f"s3://{bucket}", {**s3.options(**proxy), "fs.s3a.endpoint": "http://s3.invalid"})
    s3.requests.clear()
    with pytest.raises(FileNotFoundError):
        files.read_bytes(f"{bucket}/a")
    ((method, path),) = s3.requests
    assert (method, path.endswith(f"/{bucket}/a")) == ("GET", True)


def test_a_customers_key_is_sent_with_each_request_about_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client(MemoryClient):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name not in OF_OBJECTS:
                return found

            def asked(**given: Any) -> Any:
                assert given.pop("SSECustomerAlgorithm") == "AES256", name
                assert given.pop("SSECustomerKey") == bytes(32), name
                seen.add(name)
                return found(**given)

            return asked

    seen: set[str] = set()
    client = Client()
    monkeypatch.setattr(s3_module, "make_client", lambda settings: client)
    key = base64.b64encode(bytes(32)).decode()
    options = {"fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": key}
    files, _ = resolve("s3://own", options)
    files.write_new("own/a", b"1")
    files.write_atomic("own/a", b"22")
    assert files.read_bytes("own/a") == b"22"
    assert files.size("own/a") == 2
    with files.open_input("own/a") as opened:
        assert opened.read() == b"22"
    with files.create("own/large") as output:
        output.write(bytes(17 * 2**20))
    assert seen == OF_OBJECTS


def test_an_aborted_upload_leaves_nothing(files: S3FileSystem, bucket: str) -> None:
    def fail() -> None:
        with files.create(f"{bucket}/x") as file:
            file.write(bytes(17 * 2**20))
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fail()
    assert files.list(bucket) == []
    assert "Uploads" not in files._client.list_multipart_uploads(Bucket=bucket)


def test_reading_by_ranges(files: S3FileSystem, s3: S3Server, bucket: str) -> None:
    path = f"{bucket}/ranges"
    data = random.Random(2).randbytes(3 * TAIL)
    files.write_new(path, data)
    s3.requests.clear()
    with files.open_input(path) as file:
        assert file.read_at(2 * TAIL + 5, 100) == data[2 * TAIL + 5 : 2 * TAIL + 105]  # type: ignore[attr-defined]  # a file in S3 has more than the protocol
        assert len(s3.requests) == 1
        assert file.read_many([(0, 10), (TAIL, 20)]) == [data[:10], data[TAIL : TAIL + 20]]  # type: ignore[attr-defined]  # a file in S3 has more than the protocol
        assert len(s3.requests) == 3
        assert file.seek(-10, io.SEEK_END) == len(data) - 10
        assert file.read(100) == data[-10:]
        assert file.read(1) == b""
        assert file.seek(5) == file.tell() == 5
        assert file.read() == data[5:]
        assert len(s3.requests) == 4
    files.write_new(f"{bucket}/empty", b"")
    with files.open_input(f"{bucket}/empty") as file:
        assert (file.read(), file.size) == (b"", 0)  # type: ignore[attr-defined]  # a file in S3 has more than the protocol


def test_more_objects_than_one_page(files: S3FileSystem, bucket: str) -> None:
    for number in range(7):
        files.write_atomic(f"{bucket}/many/{number}", b"1")
    inner = files._client.get_paginator
    files._client.get_paginator = lambda name: SmallPages(inner(name))
    assert len(files.list(f"{bucket}/many")) == 7
    files.delete_tree(f"{bucket}/many")
    assert files.list(f"{bucket}/many") == []


class SmallPages:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def paginate(self, **request: Any) -> Any:
        return self._inner.paginate(**request, PaginationConfig={"PageSize": 2})


def test_errors_name_the_problem_and_the_address(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path = resolve(f"s3://{bucket}-that-is-not/x", s3.options())
    with pytest.raises(FileNotFoundError, match="there is no bucket for s3a://"):
        files.write_new(path, b"")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        files.size(path)
    with pytest.raises(InputError, match="is not in bucket"):
        files.exists("another/x")
    nowhere = s3.options(**{"fs.s3a.endpoint": "http://127.0.0.1:1"})
    files, path = resolve(f"s3://{bucket}/x", nowhere)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(OSError, match="cannot be reached") as raised:
        files.read_bytes(path)
    assert CREDENTIALS["aws_secret_access_key"] not in str(raised.value)


def test_without_credentials(
    bucket: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    reach = {"fs.s3a.endpoint": s3.endpoint, "fs.s3a.path.style.access": "true"}
    files, path = resolve(f"s3://{bucket}/x", reach)
    with pytest.raises(InputError, match=r"set fs\.s3a\.access\.key"):
        files.read_bytes(path)
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    files, path = resolve(f"s3://{bucket}/x", {**reach, "fs.s3a.aws.credentials.provider": provider})
    assert not files.exists(path)
