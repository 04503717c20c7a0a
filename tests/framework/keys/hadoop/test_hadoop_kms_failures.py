"""Failures of a Hadoop KMS: retries, failover, malformed answers, and the text of errors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from kms_stand_in import PII, QUICK, provider

from lockgate.errors import (
    KeyMissingError,
    KeyServiceError,
)
from lockgate.framework.keys import (
    HadoopKmsKeyProvider,
)
from lockgate.framework.net import HttpLimits


def limits_for(failure: str, tries: int) -> HttpLimits:
    """Return a short deadline only for failures without an answer, so that a busy host fails no
    other case.
    """
    return HttpLimits(total=0.4 if failure in ("slow", "drip") else 60, waits=(0.01,) * (tries - 1))


@pytest.mark.parametrize("failure", ["500", "503", "429", "reset", "close", "slow", "drip", "truncated"])
def test_temporary_failures_are_retried(kms: Any, failure: str) -> None:
    asker = provider(kms, limits=limits_for(failure, 30))
    asker.current_key("pii")
    kms.state.failures += [failure, failure]
    local = asker.create_local_key(PII)
    assert provider(kms).decrypt_local_key(PII, local.encrypted) == local.plain


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("500", "answered with status 500"),
        ("reset", "could not be asked|not HTTP"),
        ("slow", "gave no complete answer in time"),
        ("drip", "gave no complete answer in time"),
        ("truncated", "not HTTP"),
        ("huge", "has more than 1048576 bytes"),
    ],
)
def test_permanent_failures_are_failures_of_the_service(kms: Any, failure: str, message: str) -> None:
    """A failure is never a missing key, or a server that is down would cause masks."""
    asker = HadoopKmsKeyProvider(kms.spec(), limits=limits_for(failure, 2))
    kms.state.failures += [failure] * 10
    with pytest.raises(KeyServiceError, match=message):
        asker.usable("pii")
    kms.state.failures.clear()


@pytest.mark.parametrize(
    "said",
    ["", "no JSON", "<html>404</html>", "[]", "[7]", '{"material": "AAAA"}', '{"material": 5}', "null"],
)
def test_a_malformed_answer_is_a_failure_of_the_service(kms: Any, said: str) -> None:
    asker = provider(kms)
    asker.current_key("pii")
    kms.state.failures.append(said)
    with pytest.raises(KeyServiceError, match=f"is localhost:{kms.port}/kms a KMS"):
        asker.create_local_key(PII)


@pytest.mark.parametrize(
    "said",
    [
        '{"name": "pii", "length": "128", "versions": 1, "cipher": "AES/CTR/NoPadding"}',
        '{"name": "pii", "length": 128, "versions": 0, "cipher": "AES/CTR/NoPadding"}',
        '{"name": "pii", "length": 192, "versions": 1, "cipher": "AES/CTR/NoPadding"}',
        '{"name": "pii", "length": 128, "versions": 1, "cipher": "DES"}',
        '{"name": "pii"}',
        '["pii"]',
    ],
)
def test_malformed_metadata_of_a_key(kms: Any, said: str) -> None:
    asker = provider(kms)
    kms.state.failures.append(said)
    with pytest.raises(KeyServiceError):
        asker.current_key("pii")
    assert asker.current_key("pii") == PII


def test_a_server_that_is_no_kms(kms: Any) -> None:
    """A 404 for a wrong path is no missing key, and redirections are not followed."""
    wrong = HadoopKmsKeyProvider(f"kms://http@localhost:{kms.port}/elsewhere?user=alice", limits=QUICK)
    with pytest.raises(KeyServiceError, match="status 404"):
        wrong.usable("pii")
    asker = provider(kms)
    kms.state.failures.append("redirect")
    with pytest.raises(KeyServiceError, match="status 302"):
        asker.current_key("pii")


def test_a_404_of_a_kms_is_a_missing_key(kms: Any) -> None:
    """The KMS's own exception distinguishes it from other servers."""
    asker = provider(kms)
    missing = '{"RemoteException": {"exception": "NoSuchKeyException", "message": "no"}}'
    kms.state.failures += [f"404 {missing}"]
    with pytest.raises(KeyMissingError):
        asker.current_key("pii")
    asker.current_key("pii")
    kms.state.failures += [f"404 {missing}"]
    with pytest.raises(KeyMissingError, match="no key pii@2"):
        asker.create_local_key(PII)


def test_errors_do_not_quote_the_server(kms: Any) -> None:
    """The text of a server might contain a key by mistake."""
    kms.state.failures += ['{"material": "c2VjcmV0IGtleQ=="}', "spare"]
    with pytest.raises(KeyServiceError) as caught:
        provider(kms).key_names()
    assert "c2VjcmV0" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_creation_of_a_key_is_not_retried(kms: Any) -> None:
    """A retry after a lost answer could create two versions."""
    asker = provider(kms)
    for failure in ("500", "close"):
        kms.state.failures += ["spare", failure]
        with pytest.raises(KeyServiceError):
            asker.roll_key("pii")
    assert len(kms.state.keys["pii"]) == 3
    assert sum(each == "POST /kms/v1/key/pii" for each in kms.state.asked) == 2


def test_failover_to_another_host(kms: Any, hadoop_kms: ModuleType) -> None:
    with hadoop_kms.running(kms.state.keys) as second:
        spec = f"kms://http@127.0.0.1:1;localhost:{second.port};localhost:{kms.port}/kms?user=alice"
        asker = HadoopKmsKeyProvider(spec, limits=QUICK)
        local = asker.create_local_key(PII)
        assert kms.state.asked == []
        assert len(second.state.asked) == 2
        second.state.failures += ["503"] * 9
        assert asker.create_local_key(PII).encrypted != local.encrypted
        assert asker.create_local_key(PII).encrypted != local.encrypted
        assert len(second.state.asked) == 3, "who answered last is asked first"
        assert len(kms.state.asked) == 2
        assert asker.spec == spec
