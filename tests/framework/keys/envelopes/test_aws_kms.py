"""Master keys wrapped by AWS KMS: allowed keys, encryption context, refusals, and missing credentials."""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

import pytest

from lockgate.errors import (
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    OptionError,
    WrongKeyError,
)
from lockgate.framework.keys import (
    AwsKmsWrapper,
    EnvelopeKeyProvider,
    MemoryKeyProvider,
    ProviderWrapper,
    provider_from,
)

ROOTS = {"root@0": os.urandom(16), "root@1": os.urandom(32), "second@0": os.urandom(32)}


@pytest.fixture
def envelope() -> EnvelopeKeyProvider:
    return EnvelopeKeyProvider(ProviderWrapper(MemoryKeyProvider(ROOTS), "root"))


def changed(text: str, **changes: Any) -> str:
    """The text with changes to its first key."""
    document = json.loads(text)
    document["keys"][0].update(changes)
    return json.dumps(document)


@pytest.fixture
def aws_envelope(aws: str, aws_key: str) -> EnvelopeKeyProvider:
    made = provider_from(f"envelope:aws-kms:{aws_key}?region=eu-central-1&endpoint={aws}")
    assert isinstance(made, EnvelopeKeyProvider)
    return made


def test_aws_unwraps_under_the_named_keys_only(
    aws: str, aws_client: Any, aws_envelope: EnvelopeKeyProvider
) -> None:
    """A text that is wrapped under another key, perhaps of another account, is refused."""
    stranger = str(aws_client.create_key()["KeyMetadata"]["Arn"])
    theirs = EnvelopeKeyProvider(AwsKmsWrapper(stranger, region="eu-central-1", endpoint=aws))
    text = theirs.create("pii")
    assert json.loads(text)["keys"][0]["by"] == stranger
    table = aws_envelope.of_text(text)
    # AWS reports an incorrect key, moto a denied one.
    with pytest.raises((WrongKeyError, KeyDeniedError)):
        table.create_local_key(table.current_key("pii"))
    # Both are configured while keys move from one to the other.
    ours = aws_envelope.spec.partition("aws-kms:")[2].partition("?")[0] if aws_envelope.spec else ""
    both = EnvelopeKeyProvider(AwsKmsWrapper(ours, stranger, region="eu-central-1", endpoint=aws))
    moved = both.rewrap(text)
    master = both.of_text(text)
    local = master.create_local_key(master.current_key("pii"))
    again = aws_envelope.of_text(moved)
    assert again.decrypt_local_key(again.current_key("pii"), local.encrypted) == local.plain


def test_aws_binds_a_key_to_its_name(aws_envelope: EnvelopeKeyProvider) -> None:
    text = aws_envelope.wrap({"pii@0": bytes(range(16))})
    sealed = base64.b64decode(json.loads(text)["keys"][0]["wrapped"])
    flipped = base64.b64encode(sealed[:-1] + bytes([sealed[-1] ^ 1])).decode()
    for change in ({"name": "fin"}, {"version": 1}, {"wrapped": flipped}):
        table = aws_envelope.of_text(changed(text, **change))
        with pytest.raises(WrongKeyError, match="InvalidCiphertextException"):
            table.create_local_key(table.key_versions()[0])


def test_errors_of_aws(aws: str, aws_client: Any, aws_credentials: None) -> None:
    arn = str(aws_client.create_key()["KeyMetadata"]["Arn"])
    alias = "alias/lockgate-test"
    aws_client.create_alias(AliasName=alias, TargetKeyId=arn)
    envelope = EnvelopeKeyProvider(AwsKmsWrapper(alias, region="eu-central-1", endpoint=aws))
    table = envelope.of_text(envelope.create("pii"))
    assert table.usable("pii")
    absent = AwsKmsWrapper("alias/absent", region="eu-central-1", endpoint=aws)
    with pytest.raises(KeyMissingError, match="no key alias/absent in this region"):
        EnvelopeKeyProvider(absent).create("pii")
    for code, kind in (
        ("DisabledException", KeyDeniedError),
        ("AccessDeniedException", KeyDeniedError),
        ("NotFoundException", KeyMissingError),
        ("IncorrectKeyException", WrongKeyError),
        ("ThrottlingException", KeyServiceError),
        ("ExpiredTokenException", KeyServiceError),
        ("<secret>", KeyServiceError),
    ):
        error = absent._error(code, table.current_key("pii"))
        assert type(error) is kind
        assert "secret" not in str(error)
    assert envelope.spec == f"envelope:aws-kms:{alias}?region=eu-central-1&endpoint={aws}"


def test_without_credentials_a_key_is_not_missing(
    aws: str, aws_key: str, aws_envelope: EnvelopeKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = aws_envelope.create("pii")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    bare = EnvelopeKeyProvider(AwsKmsWrapper(aws_key, region="eu-central-1", endpoint=aws)).of_text(text)
    with pytest.raises(KeyServiceError, match=r"NoCredentialsError.*check credentials"):
        bare.usable("pii")


@pytest.mark.parametrize(
    "spec",
    [
        "envelope:aws-kms:k?region=",
        "envelope:aws-kms:k?secret=hunter2",
        "envelope:aws-kms:k?region=a&region=b",
    ],
)
def test_malformed_options_of_aws(spec: str) -> None:
    with pytest.raises(OptionError, match="credentials are never part of a setting") as caught:
        provider_from(spec)
    assert "hunter2" not in str(caught.value)


def test_aws_without_a_region_or_with_a_bad_endpoint(aws_credentials: None) -> None:
    for options in ({}, {"region": "eu-central-1", "endpoint": "nowhere"}, {"profile": "absent"}):
        with pytest.raises(KeyServiceError, match="check region, profile and endpoint"):
            AwsKmsWrapper("alias/lake", **options)
    with pytest.raises(OptionError, match="name a key"):
        AwsKmsWrapper()


def test_without_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(KeyServiceError, match=r"pip install 'lockgate\[aws\]'"):
        provider_from("envelope:aws-kms:alias/lake?region=eu-central-1")
