"""Dropping values from runs: the examples of the ORC specification, and random runs."""

from __future__ import annotations

import random

import pytest

from lockgate.framework.orc.format.run_lengths import Form, decode_integers, drop, drop_bits, span

# From "Integer Run Length Encoding, version 2" of the ORC v1 specification.
SHORT_REPEAT = ("0a2710", [10000] * 5)
DIRECT = ("5e035ca1ab1edeadbeef", [23713, 43806, 57005, 48879])
PATCHED_BASE = (
    "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8",
    [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)],
)
DELTA = ("c609020222424246", [2, 3, 5, 7, 11, 13, 17, 19, 23, 29])


@pytest.mark.parametrize(("text", "values"), [SHORT_REPEAT, DIRECT, PATCHED_BASE, DELTA])
def test_examples_of_the_specification(text: str, values: list[int]) -> None:
    run = bytes.fromhex(text)
    assert decode_integers(run, len(values), signed=False).tolist() == values
    other, others = bytes.fromhex(DIRECT[0]), DIRECT[1]
    for count in range(len(values) + 1):
        left = drop(Form.UNSIGNED, run + other, count)
        assert (
            decode_integers(left, len(values) - count + 4, signed=False).tolist() == values[count:] + others
        )
    assert span(Form.UNSIGNED, run + other, 0) == 0
    assert span(Form.UNSIGNED, run + other, 1) == span(Form.UNSIGNED, run + other, len(values)) == len(run)
    assert span(Form.UNSIGNED, run + other, len(values) + 1) == len(run) + len(other)
    for cut in range(len(run)):
        assert span(Form.UNSIGNED, run[:cut], 1) is None
        with pytest.raises(ValueError, match="0 integers, not"):
            decode_integers(run[:cut], len(values), signed=False)


def test_signed_runs() -> None:
    # Short repeat of zigzag 3 (= -2), and a delta of -3 from zigzag 19 (= -10), at fixed steps.
    repeated, falling = bytes([0x00, 3]), bytes([0xC0, 3, 19, 5])
    assert decode_integers(repeated + falling, 7, signed=True).tolist() == [-2, -2, -2, -10, -13, -16, -19]
    for count in range(7):
        left = drop(Form.SIGNED, repeated + falling, count)
        expected = [-2, -2, -2, -10, -13, -16, -19][count:]
        assert decode_integers(left, 7 - count, signed=True).tolist() == expected


def test_the_widest_numbers_survive_a_cut() -> None:
    values = [2**63 - 1, -(2**63), -1, 0, 1]
    words = b"".join(((value << 1) ^ (value >> 63)).to_bytes(65, "big")[-8:] for value in values)
    run = bytes([0x40 | 31 << 1, len(values) - 1]) + words
    assert decode_integers(run, 5, signed=True).tolist() == values
    assert decode_integers(drop(Form.SIGNED, run, 1), 4, signed=True).tolist() == values[1:]


def encode_bytes(values: bytes, rng: random.Random) -> bytes:
    """Runs as any writer might choose them."""
    out, position = b"", 0
    while position < len(values):
        same = 1
        while (
            same < 130
            and values[position : position + 1] * (same + 1) == values[position : position + same + 1]
        ):
            same += 1
        if same >= 3 and rng.random() < 0.8:
            out += bytes([same - 3, values[position]])
            position += same
        else:
            part = values[position : position + rng.randrange(1, 129)]
            out += bytes([256 - len(part)]) + part
            position += len(part)
    return out


def decode_bytes(data: bytes) -> bytes:
    out, position = b"", 0
    while position < len(data):
        header = data[position]
        if header < 128:
            out += data[position + 1 : position + 2] * (header + 3)
            position += 2
        else:
            out += data[position + 1 : position + 257 - header]
            position += 257 - header
    return out


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_bytes_and_bits(seed: int) -> None:
    rng = random.Random(seed)
    values = b"".join(bytes([rng.randrange(4)]) * rng.choice([1, 2, 5, 200]) for _ in range(40))
    data = encode_bytes(values, rng)
    assert decode_bytes(data) == values
    bits = "".join(f"{byte:08b}" for byte in values)
    for _ in range(20):
        count, bit = rng.randrange(len(values)), rng.randrange(8)
        assert decode_bytes(drop(Form.BYTES, data, count)) == values[count:]
        cut = "".join(f"{byte:08b}" for byte in decode_bytes(drop_bits(data, count, bit)))
        expected = bits[count * 8 + bit :]
        assert cut[: len(expected)] == expected
        end = span(Form.BITS, data, count)
        assert end is not None
        assert len(decode_bytes(data[:end])) >= count
        assert decode_bytes(data[:end]) == values[: len(decode_bytes(data[:end]))]


@pytest.mark.parametrize("data", [bytes([0x80, 0x00, 0x1F, 0xE0]), bytes([0xC0, 0x00]) + b"\xff" * 11])
def test_invalid_runs_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"patches have 72 bits|more than 64 bits"):
        span(Form.SIGNED, data + bytes(20), 1)
