"""The published construction (docs/integrity.md), computed here once more, against files with fixed keys.

The connector's tests read the same files.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.integrity.mac import Mac, unwrap_key, wrap_key

FIXTURES = Path(__file__).parents[3] / "fixtures" / "integrity"
LABEL = b"lockgate.orc.integrity.v1"


def load(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text("utf-8"))


def gmac(key: bytes, nonce: tuple[int, int, int], data: bytes) -> bytes:
    return AESGCM(key).encrypt(struct.pack(">III", *nonce), b"", data)


def hkdf(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, and one block of output."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_tags_of_a_file(codec: str) -> None:
    vector = load(f"people-{codec}")
    data = (FIXTURES / vector["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == vector["sha256"]
    key = bytes.fromhex(vector["mac_key"])
    tags, end = b"", 3
    for number, stripe in enumerate(vector["stripes"]):
        assert stripe["empty_streams"] > 0
        for each in stripe["tags"]:
            assert each["offset"] == end, "every byte of a stripe is covered, once"
            end += each["length"]
            tag = gmac(key, (number, each["ordinal"], each["granule"]), data[each["offset"] : end])
            assert tag.hex() == each["tag"]
            tags += tag
        assert stripe["tags"][-1]["ordinal"] == 0xFFFFFFFF
    assert data.count(tags) == 1
    tail = vector["tail"]
    assert end == tail["start"]
    header = bytes.fromhex(vector["header"])
    assert header[-16:].hex() == tail["tag"]
    footer_end = tail["footer_offset"] + tail["footer_length"]
    footer = data[tail["footer_offset"] : footer_end]
    if codec != "none":  # One chunk, stored as it is.
        assert int.from_bytes(footer[:3], "little") == (len(footer) - 3) << 1 | 1
        footer = footer[3:]
    position = footer.index(header) + len(header)
    blanked = footer[: position - 16] + bytes(16) + footer[position:]
    message = data[end : tail["footer_offset"]] + blanked + data[footer_end:]
    assert hashlib.sha256(message).hexdigest() == tail["message_sha256"]
    assert gmac(key, (0xFFFFFFFF, 0xFFFFFFFF, 0), message).hex() == tail["tag"]


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_header_of_a_file(codec: str) -> None:
    vector = load(f"people-{codec}")
    counts = [len(stripe["tags"]) for stripe in vector["stripes"]]
    header = struct.pack(">BIH", 1, 262144, len(vector["wraps"]))
    for wrap in vector["wraps"]:
        master = bytes.fromhex(vector["master_keys"][f"{wrap['key_name']}@{wrap['key_version']}"])
        provider = MemoryKeyProvider({f"{wrap['key_name']}@{wrap['key_version']}": master})
        key = provider.current_key(wrap["key_name"])
        local = provider.decrypt_local_key(key, bytes.fromhex(wrap["encrypted_key"]))
        assert local.hex() == wrap["local_key"]
        kek = hkdf(local, LABEL + wrap["key_name"].encode())
        assert kek.hex() == wrap["kek"]
        wrapped = AESGCM(kek).encrypt(bytes(12), bytes.fromhex(vector["mac_key"]), LABEL)
        assert wrapped.hex() == wrap["wrapped"]
        header += struct.pack(">HH48s", wrap["key"], wrap["variant"], wrapped)
    header += struct.pack(f">I{len(counts)}I", len(counts), *counts)
    header += bytes.fromhex(vector["tail"]["tag"])
    assert header.hex() == vector["header"]


@pytest.mark.parametrize("codec", ["zstd", "none"])
@pytest.mark.parametrize("held", [["pii@1"], ["fin@0"], ["pii@1", "fin@0"]])
def test_any_one_key_opens_the_tags(codec: str, held: list[str]) -> None:
    vector = load(f"people-{codec}")
    keys = MemoryKeyProvider({name: bytes.fromhex(vector["master_keys"][name]) for name in held})
    with EncryptedOrcFile(FIXTURES / vector["file"], keys, integrity="require") as file:
        assert file.integrity == "verified"
        columns = ["id", *(["ssn"] if "pii@1" in held else []), *(["salary"] if "fin@0" in held else [])]
        table = file.read(columns)
    assert table["id"].to_pylist() == [*range(vector["rows"])]
    if "pii@1" in held:
        assert table["ssn"][0].as_py() == vector["ssn_0"]
    if "fin@0" in held:
        assert sum(table["salary"].to_pylist()) == vector["salary_sum"]


def test_granules_and_wrapping() -> None:
    vector = load("granules")
    key = bytes.fromhex(vector["mac_key"])
    data, mac = bytes(i % 251 for i in range(vector["length"])), Mac(key)
    size = vector["granule"]
    stripe, ordinal = vector["stripe"], vector["ordinal"]
    for number, expected in enumerate(vector["tags"]):
        part = data[number * size : (number + 1) * size]
        assert mac.tag(stripe, ordinal, number, part).hex() == expected
        assert gmac(key, (stripe, ordinal, number), part).hex() == expected
    assert len(vector["tags"]) == 3
    assert mac.tag(stripe, 0xFFFFFFFF, 0, data[:100]).hex() == vector["footer_tag_of_first_100"]
    assert mac.tail_tag(data[:1000]).hex() == vector["tail_tag_of_first_1000"]
    local, name = bytes.fromhex(vector["local_key"]), vector["key_name"]
    assert wrap_key(key, local, name).hex() == vector["wrapped"]
    assert unwrap_key(bytes.fromhex(vector["wrapped"]), local, name) == key
    assert unwrap_key(bytes.fromhex(vector["wrapped"]), local, name + "x") is None
