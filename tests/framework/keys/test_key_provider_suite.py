"""All built-in providers pass the public test suite for key providers."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from lockgate.errors import KeyDeniedError, KeyServiceError
from lockgate.framework.keys import (
    AwsKmsWrapper,
    EnvelopeKeyProvider,
    HadoopKmsKeyProvider,
    JceksKeyProvider,
    KeyFileProvider,
    KeyMetadata,
    KeyProvider,
    MemoryKeyProvider,
    create_key_file,
    provider_from,
)
from lockgate.framework.keys.hadoop.jceks import PASSWORD_VARIABLE
from lockgate.framework.net import HttpLimits
from lockgate.framework.testing.key_provider_suite import KeyProviderConformance, shows

STORES = Path(__file__).parents[2] / "fixtures" / "keys"
QUICK = HttpLimits(total=5, waits=(0.01,))


def material(provider: Any) -> dict[str, bytes]:
    """The bytes of the keys of a provider in memory."""
    return {f"{name}@{version}": key for (name, version), key in provider._keys._keys.items()}


class TestMemory(KeyProviderConformance):
    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self.keys = {"pii@0": os.urandom(16), "pii@3": os.urandom(16), "fin@0": os.urandom(32)}

    def make_provider(self) -> KeyProvider:
        return MemoryKeyProvider(self.keys)

    def make_wrong(self) -> KeyProvider:
        return MemoryKeyProvider({version: os.urandom(len(key)) for version, key in self.keys.items()})

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        return material(provider)


class TestKeyFile(KeyProviderConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path, self.other = tmp_path / "keys.json", tmp_path / "other.json"
        for path in (self.path, self.other):
            create_key_file(path, ["pii"]).create_key("fin", 256)
            KeyFileProvider(path).roll_key("pii")

    def make_provider(self) -> KeyProvider:
        return provider_from(f"file:{self.path}")

    def make_wrong(self) -> KeyProvider:
        return KeyFileProvider(self.other)

    def break_service(self) -> None:
        self.path.unlink()

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        entries = json.loads(self.path.read_bytes())["keys"]
        return {f"{each['name']}@{each['version']}": base64.b64decode(each["material"]) for each in entries}


class TestJceks(KeyProviderConformance):
    """Key stores of Hadoop 3.4, with the bytes that Hadoop reads from the first one."""

    keys: ClassVar = {
        "pii@0": bytes.fromhex("ec92fc5a4fd13994471299226dfde03c"),
        "pii@1": bytes.fromhex("8974f5248d5c5039cd72e551dc3d885f"),
        "fin@0": bytes.fromhex("256d322d2d6a56bef2c02e507c1de168ec0db2d69bedc282d84d434df25ecc8a"),
    }

    shared: ClassVar[JceksKeyProvider | None] = None

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("jks")
        monkeypatch.setenv(PASSWORD_VARIABLE, "correct-horse")
        # Shared, because each key takes a tenth of a second to open.
        if TestJceks.shared is None or not Path(TestJceks.shared.path).exists():
            TestJceks.shared = JceksKeyProvider(shutil.copy(STORES / "kms.jceks", tmp_path))

    def make_provider(self) -> KeyProvider:
        assert self.shared is not None
        return self.shared

    def make_wrong(self) -> KeyProvider:
        return JceksKeyProvider(STORES / "other.jceks")

    def break_service(self) -> None:
        assert self.shared is not None
        Path(self.shared.path).unlink()

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        return self.keys


class TestHadoopKms(KeyProviderConformance):
    @pytest.fixture(autouse=True)
    def _place(self, kms: Any, hadoop_kms: ModuleType) -> Iterator[None]:
        self.kms = kms
        held = kms.state.keys
        others = {name: [os.urandom(len(key)) for key in held[name]] for name in held}
        with hadoop_kms.running(others) as self.other:
            yield

    def make_provider(self) -> KeyProvider:
        return HadoopKmsKeyProvider(self.kms.spec(), limits=QUICK)

    def make_denied(self) -> KeyProvider:
        return HadoopKmsKeyProvider(self.kms.spec("bob"), limits=QUICK)

    def make_wrong(self) -> KeyProvider:
        return HadoopKmsKeyProvider(self.other.spec(), limits=QUICK)

    def break_service(self) -> None:
        self.kms.close()
        self.kms.state.failures += ["reset"] * 100  # connections that are still open

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        held = self.kms.state.keys
        return {f"{name}@{number}": key for name in held for number, key in enumerate(held[name])}


class TestEnvelopeOfKeyFile(KeyProviderConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "root.json"
        create_key_file(self.path, ["root", "other"], bits=256)
        self.keys = {"pii@0": os.urandom(16), "pii@1": os.urandom(16), "fin@0": os.urandom(32)}
        self.text = self.envelope().wrap(self.keys)

    def envelope(self) -> EnvelopeKeyProvider:
        made = provider_from(f"envelope:root@file:{self.path}")
        assert isinstance(made, EnvelopeKeyProvider)
        return made

    def make_provider(self) -> KeyProvider:
        return self.envelope().for_table({"orc.keys.wrapped": self.text})

    def make_wrong(self) -> KeyProvider:
        others = self.envelope().wrap({version: os.urandom(len(key)) for version, key in self.keys.items()})
        return self.envelope().of_text(others)

    def break_service(self) -> None:
        self.path.unlink()

    def test_a_service_that_does_not_answer(self) -> None:
        """The names are in the table; only unwrapping needs the service."""
        provider = self.make_provider()
        key = provider.current_key("pii")
        held = self.envelope().of_text(self.text)
        self.break_service()
        for action in (lambda: held.create_local_key(key), lambda: held.usable("pii"), self.make_provider):
            with pytest.raises(KeyServiceError):
                action()

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        return self.keys


class TestEnvelopeOfAwsKms(KeyProviderConformance):
    shared: ClassVar[EnvelopeKeyProvider | None] = None
    keys: ClassVar = {"pii@0": os.urandom(16), "fin@2": os.urandom(32)}

    @pytest.fixture(autouse=True)
    def _place(self, aws: str, aws_key: str) -> None:
        self.place, self.arn = aws, aws_key
        # Shared, because boto3 takes a second to make a client.
        if TestEnvelopeOfAwsKms.shared is None:
            TestEnvelopeOfAwsKms.shared = self.envelope_at(aws)
        self.text = self.envelope().wrap(self.keys)

    def envelope(self) -> EnvelopeKeyProvider:
        assert self.shared is not None
        return self.shared

    def envelope_at(self, place: str) -> EnvelopeKeyProvider:
        made = provider_from(f"envelope:aws-kms:{self.arn}?region=eu-central-1&endpoint={place}")
        assert isinstance(made, EnvelopeKeyProvider)
        return made

    def make_provider(self) -> KeyProvider:
        return self.envelope().of_text(self.text)

    def make_denied(self) -> KeyProvider:
        class Denied(AwsKmsWrapper):
            """Answers as AWS does for a denied request; moto has no policies."""

            def _call(self, operation: str, key: KeyMetadata, **arguments: Any) -> Any:
                raise self._error("AccessDeniedException", key)

        return EnvelopeKeyProvider(Denied(self.arn, region="eu-central-1", endpoint=self.place)).of_text(
            self.text
        )

    def make_wrong(self) -> KeyProvider:
        others = self.envelope().wrap({version: os.urandom(len(key)) for version, key in self.keys.items()})
        return self.envelope().of_text(others)

    def test_a_service_that_does_not_answer(self) -> None:
        """No service listens on port 1."""
        provider = self.envelope_at("http://127.0.0.1:1").of_text(self.text)
        with pytest.raises(KeyServiceError, match="EndpointConnectionError"):
            provider.create_local_key(provider.current_key("pii"))

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        return self.keys


class Careless(MemoryKeyProvider):
    """A provider with every fault that the suite must detect."""

    def __init__(self) -> None:
        super().__init__({"pii@0": b"0123456789abcdef", "fin@0": bytes(range(32))})
        self.leak = b"0123456789abcdef"

    def __repr__(self) -> str:
        return f"Careless({self.leak.hex()})"

    def __reduce__(self) -> Any:
        return Careless, ()

    def key_names(self) -> list[str]:
        return ["pii", "fin"]

    def current_key(self, name: str) -> KeyMetadata:
        if name not in self.key_names():
            raise KeyDeniedError("which?")
        return super().current_key(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        return bytes(len(encrypted))


FAULTS = {
    "test_names_and_current_versions",
    "test_the_wrapping_is_that_of_orc",
    "test_fresh_local_keys_never_repeat",
    "test_missing_keys",
    "test_keys_of_another_length",
    "test_nothing_shows_a_key",
    "test_creating_a_key",
    "test_a_service_that_does_not_answer",
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_the_suite_finds_faults(name: str) -> None:
    class Suite(KeyProviderConformance):
        def make_provider(self) -> KeyProvider:
            return Careless()

        def break_service(self) -> None:
            pass

        def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
            return {"pii@0": b"0123456789abcdef"}

    with pytest.raises((AssertionError, KeyDeniedError)):
        getattr(Suite(), name)()


def test_spellings_of_a_key_that_count_as_shown() -> None:
    secret = bytes(range(200, 216))
    for spelled in (
        secret,
        repr(secret),
        str(list(secret)),
        secret.hex(),
        secret.hex().upper(),
        *(base64.b64encode(b"x" * lead + secret + b"tail") for lead in range(4)),
        base64.urlsafe_b64encode(b"abc" + secret),
        b"in the middle: " + secret + b".",
    ):
        assert shows(spelled, secret), spelled
    assert not shows(repr(sys.modules)[:5000], secret)
    assert not shows(os.urandom(1000), secret)
