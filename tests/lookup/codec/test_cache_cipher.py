"""The cryptography of encrypted caches: against the library's own CMAC, and against tampering."""

from __future__ import annotations

import pickle
from random import Random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.cmac import CMAC
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import KeyMissingError, LookupCacheError, WrongKeyError
from lockgate.framework.keys import MemoryKeyProvider, NoKeys
from lockgate.lookup.cache.cache_key import cipher_of, make_cache_key, open_cache_key
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.cache_cipher import CacheCipher, Opener, Sealer, SpillCipher, stored_keys
from lockgate.lookup.codec.ccm import NONCE_BYTES, RowCcm
from lockgate.lookup.codec.cmac import RowMac

SECRET = bytes(range(32))
KEYS = MemoryKeyProvider({"pii@0": b"0123456789abcdef", "fin@0": bytes(range(32))})


@given(st.lists(st.integers(0, 9).flatmap(lambda n: st.binary(min_size=8 * n, max_size=8 * n)), max_size=12))
def test_macs_are_those_of_the_standard(rows: list[bytes]) -> None:
    macs = RowMac(SECRET).of(Rows.from_values(rows))
    for row, mac in zip(rows, macs, strict=True):
        expected = CMAC(algorithms.AES(SECRET))
        expected.update(row)
        assert mac.tobytes() == expected.finalize()


def test_the_example_of_the_standard() -> None:
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    message = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411"
    )
    macs = RowMac(key).of(Rows.from_values([message, message[:16]]))
    assert macs[0].tobytes().hex() == "dfa66747de9ae63030ca32611497c827"
    assert macs[1].tobytes().hex() == "070a16b46b4d4144f79bdd9dd04a287c"


def keys_of(*texts: bytes) -> Rows:
    return Rows.from_values([text + bytes(-len(text) % 8) for text in texts])


def test_sealed_keys_keep_the_space_and_the_value_but_not_the_hash() -> None:
    first = bytes([0x80, 1, 2, 3, 4, 5, 6, 7])
    plain = keys_of(bytes(8) + b"a value of a key", first + b"another ", bytes(8) + b"another ")
    sealed = CacheCipher(SECRET).seal_keys(plain).to_bytes()
    assert [key[16:] for key in sealed] == [row[8:] for row in plain.to_bytes()]
    assert [key[0] >> 7 for key in sealed] == [0, 1, 0]
    assert sealed[1][1:16] != sealed[2][1:16]
    other = CacheCipher(bytes(32)).seal_keys(plain).to_bytes()
    assert all(mine[:16] != theirs[:16] for mine, theirs in zip(sealed, other, strict=True))


def test_values_open_with_their_own_key_only() -> None:
    cipher = CacheCipher(SECRET)
    sealer = Sealer(cipher, 0)
    keys = Rows.from_values([b"k" * 24, b"l" * 24, b"m" * 24, b"n" * 32])
    values = [b"value one" * 8, b"", b"value one" * 8, b"a longer value!!" * 20]
    sealed = sealer.seal(keys, Rows.from_values(values)).to_bytes()
    assert sealed[1] == b"", "what deletes a key stays"
    assert not any(b"value" in value for value in sealed)
    assert sealed[0][16:] != sealed[2][16:]
    opener = Opener(cipher, [sealer.salt.hex()])
    there = np.array([0, 2, 3])
    opened = opener.open(keys.take(there), Rows.from_values([sealed[at] for at in there]))
    assert opened.gather().to_bytes() == [values[at] for at in there]
    first = keys.take(np.array([0]))
    damaged = [
        bytes([*sealed[0][:at], sealed[0][at] ^ 1, *sealed[0][at + 1 :]]) for at in (0, 8, 11, 20, 40, -1)
    ]
    for wrong in (sealed[2], *damaged, b"too short" + bytes(7), sealed[0][:-8], sealed[0] + bytes(8)):
        with pytest.raises(LookupCacheError, match="was changed, or belongs to another key"):
            opener.open(first, Rows.from_values([wrong]))
    # Two keys with one MAC: the rest of the key is authenticated too.
    alike = Rows.from_values([stored_keys(first).to_bytes()[0] + b"another!"])
    with pytest.raises(LookupCacheError):
        opener.open(alike, Rows.from_values(sealed[:1]))
    with pytest.raises(LookupCacheError):
        Opener(CacheCipher(bytes(32)), [sealer.salt.hex()]).open(first, Rows.from_values(sealed[:1]))


def test_no_nonce_is_used_twice_in_a_session_and_no_session_has_the_key_of_another() -> None:
    cipher = CacheCipher(SECRET)
    one, two = Sealer(cipher, 3), Sealer(cipher, 3)
    keys = Rows.from_values([bytes([n]) * 16 for n in range(50)])
    some = Rows.from_values([b"", *keys.to_bytes()[1:]])
    sealed = one.seal(keys, keys).to_bytes() + [value for value in one.seal(keys, some).to_bytes() if value]
    assert len({value[:11] for value in sealed}) == 99
    assert {value[8:16] for value in sealed} == {(3).to_bytes(8, "little")}
    assert one.salt != two.salt
    again = two.seal(keys, keys).to_bytes()
    assert again[0][:16] == sealed[0][:16]
    assert again[0][16:] != sealed[0][16:]


def test_values_of_several_sessions_are_opened_together() -> None:
    cipher = CacheCipher(SECRET)
    sealers = [Sealer(cipher, number) for number in range(3)]
    keys = Rows.from_values([bytes([n]) * 16 for n in range(30)])
    values = [bytes([n]) * (8 + n % 5 * 8) for n in range(30)]
    sealed = [
        sealers[n % 3].seal(keys.take(np.array([n])), Rows.from_values([value])).to_bytes()[0]
        for n, value in enumerate(values)
    ]
    opener = Opener(cipher, [sealer.salt.hex() for sealer in sealers])
    assert opener.open(keys, Rows.from_values(sealed)).gather().to_bytes() == values


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 40)), min_size=1, max_size=20), st.randoms())
def test_sealed_rows_are_those_of_the_standard(sizes: list[tuple[int, int]], rng: Random) -> None:
    keys = Rows.from_values([rng.randbytes(8 * key) for key, _ in sizes])
    plain = Rows.from_values([rng.randbytes(8 * value) for _, value in sizes])
    nonces = np.frombuffer(rng.randbytes(NONCE_BYTES * len(sizes)), np.uint8).reshape(-1, NONCE_BYTES)
    sealed, tags = RowCcm(SECRET).seal(nonces, keys, plain)
    library = AESCCM(SECRET)
    lines = zip(keys.to_bytes(), plain.to_bytes(), sealed.gather().to_bytes(), tags, nonces, strict=True)
    for key, value, body, tag, nonce in lines:
        assert body + tag.tobytes() == library.encrypt(nonce.tobytes(), value, key)
    assert RowCcm(SECRET).open(nonces, keys, sealed, tags).gather().to_bytes() == plain.to_bytes()


def test_chunks_of_sealed_rows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Rows.from_values([bytes([n % 256]) * 8 * (n % 37) for n in range(500)])
    keys = Rows.from_values([n.to_bytes(8) * (1 + n % 3) for n in range(500)])
    nonces = np.arange(500 * NONCE_BYTES).astype(np.uint8).reshape(-1, NONCE_BYTES)
    whole, tags = RowCcm(SECRET).seal(nonces, keys, plain)
    monkeypatch.setattr("lockgate.lookup.codec.ccm._CHUNK_WORDS", 100)
    parts, others = RowCcm(SECRET).seal(nonces, keys, plain)
    assert parts.gather().to_bytes() == whole.gather().to_bytes()
    assert (tags == others).all()


def test_long_keys_are_those_of_the_standard_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # From 65,280 bytes on the standard spells the length of associated data in another way.
    lengths = [8, 65_272, 16, 65_280, 4096, 4104, 8, 200_000, 65_288]
    keys = Rows.from_values([bytes([n + 1]) * length for n, length in enumerate(lengths)])
    plain = Rows.from_values([bytes([n]) * 8 * (n % 4) for n in range(len(lengths))])
    nonces = np.arange(len(lengths) * NONCE_BYTES).astype(np.uint8).reshape(-1, NONCE_BYTES)
    for chunk in (1, 3, 1 << 11):
        monkeypatch.setattr("lockgate.lookup.codec.ccm._CHUNK_ROWS", chunk)
        sealed, tags = RowCcm(SECRET).seal(nonces, keys, plain)
        lines = zip(keys.to_bytes(), plain.to_bytes(), sealed.gather().to_bytes(), tags, nonces, strict=True)
        for key, value, body, tag, nonce in lines:
            assert body + tag.tobytes() == AESCCM(SECRET).encrypt(nonce.tobytes(), value, key)
        assert RowCcm(SECRET).open(nonces, keys, sealed, tags).gather().to_bytes() == plain.to_bytes()
    with pytest.raises(ValueError, match="no bytes"):
        RowCcm(SECRET).seal(nonces[:1], Rows.from_values([b""]), plain.take(np.array([0])))


def test_spills_are_encrypted() -> None:
    cipher = SpillCipher()
    sealed = [cipher.seal(b"a secret value") for _ in range(3)]
    assert len({piece[:12] for piece in sealed}) == 3
    assert [cipher.open(piece) for piece in sealed] == [b"a secret value"] * 3
    with pytest.raises(LookupCacheError, match="changed while it was built"):
        cipher.open(sealed[0][:-1] + b"x")


def test_a_cache_opens_with_all_of_its_keys_also_after_they_were_rolled() -> None:
    content, cipher = make_cache_key(KEYS, ["pii", "fin"])
    assert [(key["name"], key["version"]) for key in content["wrapped"]] == [("fin", 0), ("pii", 0)]
    rolled = MemoryKeyProvider({"pii@0": b"0123456789abcdef", "fin@0": bytes(range(32))})
    rolled.roll_key("pii")
    assert open_cache_key(rolled, content).secret == cipher.secret
    assert make_cache_key(rolled, ["pii"])[0]["wrapped"][0]["version"] == 1
    assert cipher.secret.hex() not in str(content)
    with pytest.raises(KeyMissingError, match="fin"):
        open_cache_key(MemoryKeyProvider({"pii@0": b"0123456789abcdef"}), content)
    with pytest.raises(KeyMissingError):
        open_cache_key(None, content)
    with pytest.raises(KeyMissingError):
        make_cache_key(NoKeys(), ["pii"])
    other = MemoryKeyProvider({"pii@0": b"another key 1234", "fin@0": bytes(range(32))})
    with pytest.raises(WrongKeyError, match="fin@0, pii@0"):
        open_cache_key(other, content)
    with pytest.raises(WrongKeyError):
        cipher_of(bytes(32), content)


def test_the_key_is_neither_shown_nor_pickled() -> None:
    cipher = CacheCipher(SECRET)
    assert repr(cipher) == "CacheCipher()"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(cipher)


def test_seal_keys_of_nothing() -> None:
    assert len(CacheCipher(SECRET).seal_keys(Rows.empty())) == 0
    assert RowMac(SECRET).of(Rows(np.zeros(0, np.uint64), np.zeros(1, np.int64))).shape == (0, 2)
