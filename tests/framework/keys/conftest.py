"""Key services for the tests of key providers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kms_stand_in import stand_in

_MADE: dict[str, Any] = {}


@pytest.fixture(scope="session")
def hadoop_kms() -> ModuleType:
    """The module with the stand-in for a Hadoop KMS."""
    return stand_in()


@pytest.fixture
def kms(hadoop_kms: ModuleType) -> Iterator[Any]:
    """A Hadoop KMS with the keys pii (128 bits, three versions) and fin (256 bits), both for alice only."""
    keys = {"pii": [os.urandom(16) for _ in range(3)], "fin": [os.urandom(32)]}
    with hadoop_kms.running(keys) as server:
        server.state.users = {"pii": {"alice"}, "fin": {"alice"}, "made-by-conformance": {"alice"}}
        yield server


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    """The address of a simulated AWS on this machine."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fake credentials and no others; moto accepts any."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def aws_client(aws: str, aws_credentials: None) -> Any:
    """A shared client of AWS KMS, because each takes a second to make."""
    import boto3

    if aws not in _MADE:
        _MADE[aws] = boto3.client("kms", endpoint_url=aws, region_name="eu-central-1")
    return _MADE[aws]


@pytest.fixture
def aws_key(aws_client: Any) -> str:
    """The ARN of a key of AWS KMS that all tests use."""
    if "arn" not in _MADE:
        _MADE["arn"] = aws_client.create_key()["KeyMetadata"]["Arn"]
    return str(_MADE["arn"])
