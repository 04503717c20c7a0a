"""Changed files: every change is reported, and no wrong value is read."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pytest

from lockgate.errors import IntegrityError, LockgateError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, verify_file, write_table
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.integrity.header import ATTRIBUTE, TAGS_ITEM
from lockgate.framework.orc.sources.file_source import MemorySource

KEYS = MemoryKeyProvider({"pii@0": b"p" * 16, "fin@2": b"f" * 32})
ROWS = 300


class Recording(MemorySource):
    """Records which bytes are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "<recorded>")
        self.touched = bytearray(len(data))

    def read_at(self, offset: int, length: int) -> memoryview:
        self.touched[offset : offset + length] = b"\xff" * length
        return super().read_at(offset, length)


@dataclass(frozen=True)
class Sample:
    """A file, its rows, the bytes that reading them accesses, and the locations of its streams and
    stripes.
    """

    data: bytes
    twin: bytes
    rows: pa.Table
    touched: bytes
    streams: tuple[tuple[int, int], ...]
    stripes: tuple[tuple[int, int], ...]
    tail: int


def rows() -> pa.Table:
    rng = random.Random(7)
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "ssn": [f"{rng.randrange(10**9):09d}" for _ in range(ROWS)],
            "salary": pa.array([rng.randrange(10**5) if i % 9 else None for i in range(ROWS)], pa.int32()),
            "tags": [[f"t{rng.randrange(50)}"] * (i % 3) for i in range(ROWS)],
            "plain": [rng.random() for _ in range(ROWS)],
        }
    )


def write(table: pa.Table, codec: str) -> bytes:
    sink = io.BytesIO()
    write_table(
        table,
        sink,
        encrypt="pii:ssn,tags;fin:salary",
        mask="sha256:ssn",
        keys=KEYS,
        compression=codec,
        stripe_size=2000,
        row_index_stride=50,
        bloom_filter_columns=["ssn"],
    )
    return sink.getvalue()


def read(source: object) -> pa.Table:
    with EncryptedOrcFile(source, KEYS, strict=True, threads=1) as file:
        return file.read()


@cache
def sample(codec: str) -> Sample:
    table = rows()
    data, twin = write(table, codec), write(table, codec)
    assert len(data) == len(twin)
    recording = Recording(data)
    found = read(recording)
    assert found.equals(table)
    with EncryptedOrcFile(data, KEYS, strict=True) as file:
        assert file.integrity == "verified"
        assert file.num_stripes > 1
        streams, stripes = [], []
        for index in range(file.num_stripes):
            streams += [
                (each.offset, each.length) for each in read_stripe(file._source, file._tail, index).streams
            ]
            stripe = file._tail.footer.stripes[index]
            footer = stripe.offset + stripe.index_length + stripe.data_length
            streams.append((footer, stripe.footer_length))
            stripes.append((stripe.offset, footer + stripe.footer_length - stripe.offset))
        tail = file._tail.stripe_statistics_offset
    return Sample(
        data,
        twin,
        table,
        bytes(recording.touched),
        tuple(each for each in streams if each[1]),
        tuple(stripes),
        tail,
    )


def flip(bits: int, start: int = 0) -> Callable[[Sample, random.Random], bytes]:
    def change(of: Sample, rng: random.Random) -> bytes:
        changed, begin = bytearray(of.data), of.tail if start else 0
        for _ in range(rng.randint(1, bits)):
            changed[rng.randrange(begin, len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)

    return change


def burst(of: Sample, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(of.data)), rng.randint(1, 200)
    end = min(start + length, len(of.data))
    filling = rng.choice([bytes(end - start), rng.randbytes(end - start), of.twin[start:end]])
    return of.data[:start] + filling + of.data[end:]


def cut(of: Sample, rng: random.Random) -> bytes:
    """Remove bytes at the end, at the start, or in the middle."""
    start = rng.randrange(len(of.data))
    return rng.choice(
        [of.data[:start], of.data[start:], of.data[:start] + of.data[start + rng.randint(1, 500) :]]
    )


def grow(of: Sample, rng: random.Random) -> bytes:
    start = rng.choice([0, len(of.data), rng.randrange(len(of.data))])
    return of.data[:start] + rng.randbytes(rng.randint(1, 40)) + of.data[start:]


def swapped(data: bytes, one: tuple[int, int], other: tuple[int, int]) -> bytes:
    (first, length), (second, long) = sorted([one, other])
    if first + length > second:
        return data
    between = data[first + length : second]
    return (
        data[:first]
        + data[second : second + long]
        + between
        + data[first : first + length]
        + data[second + long :]
    )


def swap_streams(of: Sample, rng: random.Random) -> bytes:
    """Exchange two streams, of equal length if possible."""
    one = rng.choice(of.streams)
    alike = [each for each in of.streams if each[1] == one[1] and each != one]
    return swapped(of.data, one, rng.choice(alike or of.streams))


def swap_stripes(of: Sample, rng: random.Random) -> bytes:
    one, other = rng.sample(of.stripes, 2)
    return swapped(of.data, one, other)


def transplant(
    places: Callable[[Sample], Sequence[tuple[int, int]]],
) -> Callable[[Sample, random.Random], bytes]:
    """Copy a part from another file with the same rows, keys and layout."""

    def change(of: Sample, rng: random.Random) -> bytes:
        start, length = rng.choice(places(of))
        return of.data[:start] + of.twin[start : start + length] + of.data[start + length :]

    return change


def strip(of: Sample, rng: random.Random) -> bytes:
    """Remove or change some of the items that state that there are tags."""
    with EncryptedOrcFile(of.data, integrity="ignore") as file:
        tail = file._tail
    footer, postscript = proto.Footer(), proto.PostScript()
    footer.CopyFrom(tail.footer)
    postscript.CopyFrom(tail.postscript)
    items = {item.name: item for item in footer.metadata}
    rng.choice(
        [
            lambda: footer.types[0].attributes.pop(),
            lambda: footer.metadata.remove(items[ATTRIBUTE]),
            lambda: footer.metadata.remove(items[TAGS_ITEM]),
            lambda: footer.ClearField("metadata"),
            lambda: footer.metadata.add(name=ATTRIBUTE, value=items[ATTRIBUTE].value),
            lambda: setattr(items[TAGS_ITEM], "value", items[TAGS_ITEM].value[16:]),
            lambda: setattr(items[TAGS_ITEM], "value", items[TAGS_ITEM].value + bytes(16)),
            lambda: setattr(items[ATTRIBUTE], "value", items[ATTRIBUTE].value[:-20]),
            lambda: setattr(items[ATTRIBUTE], "value", b"\2" + items[ATTRIBUTE].value[1:]),
            lambda: setattr(footer.types[0].attributes[-1], "value", "2"),
            lambda: footer.ClearField("encryption"),
        ]
    )()
    content = frame(tail.codec, footer.SerializeToString(), tail.block_size)
    postscript.footer_length = len(content)
    ending = postscript.SerializeToString()
    return of.data[: tail.footer_offset] + content + ending + bytes([len(ending)])


WAYS: list[Callable[[Sample, random.Random], bytes]] = [
    *[flip(1), flip(1, start=1), flip(3), flip(40), burst] * 2,
    cut,
    grow,
    swap_streams,
    swap_stripes,
    transplant(lambda of: of.streams),
    transplant(lambda of: of.stripes),
    transplant(lambda of: [(of.tail, len(of.data) - of.tail)]),
    strip,
]


def changes(of: Sample, count: int, seed: str) -> Iterator[bytes]:
    rng = random.Random(seed)
    made = 0
    while made < count:
        changed = WAYS[made % len(WAYS)](of, rng)
        made += 1
        if changed != of.data:
            yield changed


def reported(data: bytes) -> bool:
    """Return whether checking the complete file reports the change."""
    try:
        return verify_file(data, KEYS).status != "verified"
    except LockgateError:
        return True


def is_touched(of: Sample, changed: bytes) -> bool:
    """Return whether reading all rows accesses a changed byte; always if bytes moved."""
    if len(changed) != len(of.data):
        return True
    touched, before, after = (int.from_bytes(each, "big") for each in (of.touched, of.data, changed))
    return bool(touched & (before ^ after))


def check(codec: str, count: int, seed: str) -> None:
    of = sample(codec)
    assert verify_file(of.data, KEYS).status == "verified"
    seen = untouched = 0
    for changed in changes(of, count, seed):
        seen += 1
        assert reported(changed), f"change {seen} is not reported"
        try:
            found = read(changed)
        except LockgateError:
            continue
        assert not is_touched(of, changed), f"change {seen} touches what was read"
        untouched += 1
        assert found.equals(of.rows)
    assert seen > count * 0.8
    assert 0 < untouched < seen / 2, "changes of masks and indexes, which reading all rows does not touch"


@pytest.mark.parametrize(
    "codec",
    ["zstd", *(pytest.param(each, marks=pytest.mark.long) for each in ("none", "zlib", "snappy", "lz4"))],
)
def test_every_change_is_reported(codec: str) -> None:
    check(codec, 400, f"normal {codec}")


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_many_changes_are_reported(codec: str) -> None:
    check(codec, 2000, f"slow {codec}")


def test_without_tags_a_flipped_bit_changes_a_value() -> None:
    of = sample("none")
    position = of.data.index(struct.pack("<d", of.rows["plain"][3].as_py()))
    changed = bytearray(of.data)
    changed[position + 6] ^= 1
    with EncryptedOrcFile(bytes(changed), KEYS, integrity="ignore") as file:
        assert file.integrity == "ignored"
        found = file.read()
    assert not found["plain"].equals(of.rows["plain"])
    assert found.drop_columns("plain").equals(of.rows.drop_columns("plain"))
    with EncryptedOrcFile(bytes(changed), KEYS) as file:
        assert file.read(["id", "ssn"]).equals(of.rows.select(["id", "ssn"]))
        with pytest.raises(IntegrityError, match=r"bytes \d+ to \d+ \(stream \d+ of stripe 0\)"):
            file.read(["plain"])
    report = verify_file(bytes(changed), KEYS, name="people.orc")
    (damage,) = report.damage
    assert damage.start <= position + 6 < damage.end
    assert damage.location == "stream DATA of column 'plain', in stripe 0"
    with pytest.raises(IntegrityError, match=r"people.orc: bytes \d+ to \d+ \(stream DATA of column 'plain'"):
        report.raise_for_damage()
