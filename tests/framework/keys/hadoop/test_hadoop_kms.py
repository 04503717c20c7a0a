"""The Hadoop KMS provider: specifications, requests, TLS and caches."""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kms_stand_in import PII, QUICK, provider

from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    OptionError,
    UnprotectedKeysWarning,
)
from lockgate.framework.keys import (
    HadoopKmsKeyProvider,
    KeyAlgorithm,
    KeyMetadata,
    create_key,
    list_keys,
    provider_from,
    roll_key,
)
from lockgate.framework.keys.expiring_cache import ExpiringCache
from lockgate.framework.keys.hadoop.hadoop_kms_spec import parse_kms
from lockgate.framework.net import HttpLimits

# --- the specification ---


@pytest.mark.parametrize(
    ("text", "hosts", "spec"),
    [
        ("kms://https@a:9600/kms", "a:9600", "kms://https@a:9600/kms"),
        ("kms:https@a", "a:9600", "kms://https@a:9600/kms"),
        ("kms://http@a;b;c:9000/x/y/", "a:9000, b:9000, c:9000", "kms://http@a;b;c:9000/x/y"),
        ("kms://https@a:1;b:2/kms", "a:1, b:2", "kms://https@a:1;b:2/kms"),
        ("kms://https@[::1]:9/kms", "[::1]:9", "kms://https@[::1]:9/kms"),
        (
            "kms://https@a/kms?user=etl&ca=/etc/ca.pem&timeout=2.5&cache=0&cache-entries=7",
            "a:9600",
            "kms://https@a:9600/kms?user=etl&ca=/etc/ca.pem&timeout=2.5&cache=0&cache-entries=7",
        ),
    ],
)
def test_the_specification_of_a_kms_round_trips(text: str, hosts: str, spec: str) -> None:
    parsed = parse_kms(text)
    assert parsed.address == hosts
    assert parsed.spec == spec
    assert parse_kms(parsed.spec) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "kms:",
        "kms://a:9600/kms",
        "kms://ftp@a/kms",
        "kms://https@/kms",
        "kms://https@hunter2:hunter2@a:9600/kms",
        "kms://https@a:99999/kms",
        "kms://https@a:0/kms",
        "kms://https@a b/kms",
        "kms://https@a/kms?password=hunter2",
        "kms://https@a/kms?hunter2",
        "kms://https@a/kms?user=",
        "kms://https@a/kms?user=a&user=b",
        "kms://https@a/kms?timeout=0",
        "kms://https@a/kms?timeout=soon",
        "kms://https@a/kms?cache=-1",
        "kms://http@a/kms?ca=/etc/ca.pem",
    ],
)
def test_malformed_specifications(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        provider_from(text)
    assert "hunter2" not in str(caught.value)


def test_the_user_of_requests(kms: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of the specification, else of Hadoop's variable, else of the process."""
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    bare = f"kms://http@localhost:{kms.port}/kms"
    assert provider_from(bare).usable("pii")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    assert not provider_from(bare).usable("pii")
    assert provider_from(bare + "?user=alice").usable("pii")


def test_without_tls_only_loopback_gives_no_warning() -> None:
    with pytest.warns(UnprotectedKeysWarning, match="kms://https@"):
        provider_from("kms://http@kms.example:9600/kms?user=a")


# --- requests ---


def test_metadata_and_local_keys_are_cached(kms: Any) -> None:
    """One request for the metadata of a key, one for each local key; never one for a master key."""
    asker = provider(kms)
    assert asker.key_names() == ["fin", "pii"]
    key = asker.current_key("pii")
    assert key == PII
    local = asker.create_local_key(key)
    for _ in range(5):
        assert asker.decrypt_local_key(key, local.encrypted) == local.plain
        assert asker.current_key("pii") == key
    asked = [
        "GET /kms/v1/keys/names",
        "GET /kms/v1/key/pii/_metadata",
        "POST /kms/v1/keyversion/pii@2/_eek",
    ]
    assert kms.state.asked == asked
    assert asker.usable("pii")
    assert asker.usable("pii")
    assert kms.state.asked == [*asked, asked[-1]], "whether a key is usable is kept as well"
    asker.close()
    assert asker.decrypt_local_key(key, local.encrypted) == local.plain
    assert kms.state.asked[-2:] == asked[-2:]


def test_the_cache_can_be_disabled(kms: Any) -> None:
    asker = provider(kms, cache=0)
    local = asker.create_local_key(PII)
    for _ in range(3):
        asker.decrypt_local_key(PII, local.encrypted)
    assert sum("_eek" in each for each in kms.state.asked) == 4


def test_denied_and_missing_keys_are_cached(kms: Any) -> None:
    asker = provider(kms, "bob")
    for _ in range(5):
        with pytest.raises(KeyDeniedError, match=r"does not let user 'bob' have a local key of pii@2"):
            asker.decrypt_local_key(PII, os.urandom(16))
    assert sum("_eek" in each for each in kms.state.asked) == 1
    kms.state.users["pii"].add("bob")
    assert provider(kms, "bob").usable("pii")


def test_a_key_is_usable_without_access_to_its_metadata(kms: Any) -> None:
    kms.state.closed.add("alice")
    local = provider(kms).create_local_key(PII)
    assert len(local.plain) == 16
    for action in (lambda: provider(kms).current_key("pii"), lambda: provider(kms).key_names()):
        with pytest.raises(KeyDeniedError, match="does not let user 'alice'"):
            action()
    absent = KeyMetadata("pii", 3, KeyAlgorithm.AES_CTR_128)
    with pytest.raises(KeyMissingError, match="no key pii@3"):
        provider(kms).decrypt_local_key(absent, bytes(16))


def test_a_rolled_key(kms: Any) -> None:
    asker = provider(kms)
    assert asker.current_key("pii").version == 2
    assert roll_key(kms.spec(), "pii") == KeyMetadata("pii", 3, KeyAlgorithm.AES_CTR_128)
    assert asker.current_key("pii").version == 2, "for half a minute"
    rolled = KeyMetadata("pii", 3, KeyAlgorithm.AES_CTR_128)
    assert len(asker.create_local_key(rolled).plain) == 16, "but files of others are read at once"
    assert asker.current_key("pii").version == 3
    assert create_key(asker, "new", 256) == KeyMetadata("new", 0, KeyAlgorithm.AES_CTR_256)
    with pytest.raises(AlreadyExistsError, match="roll it instead"):
        asker.create_key("new")
    with pytest.raises(InputError, match="have one length, 128 bits"):
        asker.roll_key("pii", 256)
    with pytest.raises(KeyDeniedError):
        provider(kms, "bob").roll_key("pii")
    assert [str(key) for key in list_keys(asker)] == ["fin@0", "new@0", "pii@0", "pii@1", "pii@2", "pii@3"]


def test_keys_of_other_users_are_not_listed(kms: Any) -> None:
    kms.state.keys["odd"] = [os.urandom(24)]
    listed = ["fin@0", "pii@0", "pii@1", "pii@2"]
    assert [str(key) for key in list_keys(kms.spec())] == listed
    kms.state.failures += ["spare", '404 {"RemoteException": {"exception": "NoSuchKeyException"}}']
    assert [str(key) for key in list_keys(kms.spec())] == listed[1:]
    with pytest.raises(KeyServiceError, match="has 192 bits; ORC encrypts with 128 or 256"):
        provider(kms).current_key("odd")


def test_custom_authentication(kms: Any) -> None:
    """Headers of the caller, made for each request, replace the name of the user."""
    hosts: list[str] = []

    def headers(host: str) -> dict[str, str]:
        hosts.append(host)
        return {"Cookie": 'hadoop.auth="u=alice&p=alice"'}

    asker = HadoopKmsKeyProvider(kms.spec("bob"), headers=headers, limits=QUICK)
    assert asker.usable("pii")
    assert hosts == ["localhost"] * 2
    assert asker.spec is None
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(asker)
    refused = HadoopKmsKeyProvider(kms.spec(), headers=lambda host: {}, limits=QUICK)
    with pytest.raises(KeyServiceError, match="more than the name of a user; pass headers="):
        refused.key_names()


def test_many_threads_share_a_provider(kms: Any) -> None:
    asker = provider(kms, limits=HttpLimits(total=5, waits=(0.01, 0.02)))
    kms.state.failures += ["spare", "spare", "500", "spare", "close", "spare", "503"]

    def one(number: int) -> bool:
        local = asker.create_local_key(PII)
        return provider(kms, limits=HttpLimits()).decrypt_local_key(PII, local.encrypted) == local.plain

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(40)))


def test_a_forked_process_opens_new_connections(kms: Any) -> None:
    asker = provider(kms, limits=HttpLimits())
    local = asker.create_local_key(PII)
    asker.close()
    asker.current_key("pii")  # leaves a connection open
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        same = asker.decrypt_local_key(PII, local.encrypted) == local.plain
        os.write(writing, b"same" if same else b"other")
        os._exit(0)
    assert os.read(reading, 10) == b"same"
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert asker.decrypt_local_key(PII, local.encrypted) == local.plain


# --- TLS ---


def test_tls_is_verified(kms: Any, hadoop_kms: ModuleType, tmp_path: Path) -> None:
    pem = hadoop_kms.certificate(tmp_path, "localhost")
    with hadoop_kms.running(kms.state.keys, hadoop_kms.server_context(pem)) as server:
        trusted = provider_from(server.spec(ca=pem))
        local = trusted.create_local_key(PII)
        assert provider_from(trusted.spec).decrypt_local_key(PII, local.encrypted) == local.plain
        asked = len(server.state.asked)
        with pytest.raises(KeyServiceError, match="certificate that is not trusted"):
            provider(server).key_names()
        plain = HadoopKmsKeyProvider(server.spec().replace("https@", "http@"), limits=QUICK)
        with pytest.raises(KeyServiceError):
            plain.key_names()
        assert len(server.state.asked) == asked, "nothing was said before the certificate was found good"
    with pytest.raises(KeyServiceError, match=r"did not speak TLS as expected|could not be asked"):
        HadoopKmsKeyProvider(kms.spec(ca=pem).replace("http@", "https@"), limits=QUICK).key_names()


def test_the_host_name_is_verified(kms: Any, hadoop_kms: ModuleType, tmp_path: Path) -> None:
    pem = hadoop_kms.certificate(tmp_path, "kms.example")
    with hadoop_kms.running(kms.state.keys, hadoop_kms.server_context(pem)) as server:
        with pytest.raises(KeyServiceError, match=r"not trusted \(Hostname mismatch"):
            HadoopKmsKeyProvider(server.spec(ca=pem), limits=QUICK).key_names()
        assert server.state.asked == []


def test_authorities_that_cannot_be_read(tmp_path: Path) -> None:
    spec = f"kms://https@localhost/kms?user=a&ca={tmp_path}/ca.pem"
    with pytest.raises(KeyServiceError, match=r"ca\.pem cannot be read: No such file"):
        provider_from(spec)
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(KeyServiceError, match=r"ca\.pem cannot be read"):
        provider_from(spec)


# --- the cache ---


def test_entries_expire_and_are_bounded() -> None:
    now = [0.0]
    cache: ExpiringCache[str, bytes] = ExpiringCache(3, 10, clock=lambda: now[0])
    for number, name in enumerate("abc"):
        now[0] = number
        cache.put(name, name.encode())
    assert cache.get("a") == b"a"
    cache.put("d", b"d")
    assert cache.get("b") is None, "the one that was used least recently has gone"
    now[0] = 10.0
    assert cache.get("a") is None, "however often it is used"
    assert cache.get("c") == b"c"
    now[0] = 100.0
    cache.put("e", b"e")
    assert len(cache) == 1, "what has expired does not stay in memory"
    assert repr(cache) == "ExpiringCache(1 of 3 entries, 10 s)"
    cache.remove("e")
    cache.remove("e")
    assert cache.get("e") is None
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(cache)


def test_a_cached_denial_expires(kms: Any) -> None:
    asker = provider(kms, cache=0.2)
    local = asker.create_local_key(PII)
    assert asker.usable("pii")
    kms.state.users["pii"].clear()
    time.sleep(0.25)
    with pytest.raises(KeyDeniedError):
        asker.decrypt_local_key(PII, local.encrypted)
    assert not asker.usable("pii")
