"""Mutated files: reading one ends with rows or with an error of ours, and this process lives on.

Every case is named by a number that it follows from alone, so a failure can be run again by itself:
`run(case_number, ...)`.
"""

from __future__ import annotations

import io
import random
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError, MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, Isolation, inspect_file, proto, write_table
from lockgate.framework.orc.cipher import crypt
from lockgate.framework.orc.framing import frame, unframe
from lockgate.framework.orc.layout import INDEX_KINDS, MAGIC, PLACEHOLDERS, StreamKind
from lockgate.framework.orc.source import open_source
from lockgate.framework.orc.stripe import Stream, read_stripe
from lockgate.framework.orc.tail import Tail, read_tail
from lockgate.framework.orc.variants import Variants
from lockgate.pushdown import col

CODECS = ("zstd", "snappy", "zlib", "lz4", "none")
COLUMNS = ["id", "ssn", "email", "salary", "active", "score", "born", "seen", "raw", "tags", "address"]
# Those that are in all files.
PROJECTED = ["id", "ssn", "email", "salary", "score", "seen", "tags"]
ENCRYPT = "pii:ssn,email,score,seen,tags;fin:salary,address"
# The keys of the file that Java wrote; the others are written with them as well.
KEYS = {"pii@0": bytes(range(16)), "fin@0": bytes(range(32))}
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "orc"
DEADLINE = 2.0
# No case takes nearly as long, so one that does hangs.
STUCK_SECONDS = 60
# This process may allocate so much more than it holds: a length in a file must not decide how much.
ROOM = 1 << 30

KINDS = (
    "bytes",
    "cut",
    "tail",
    "stripe footer",
    "metadata",
    "file statistics",
    "stripe statistics",
    "index",
    "stream",
)

Rng = random.Random


@dataclass
class Base:
    """A sound file, and what is in it."""

    data: bytes
    tail: Tail
    variants: Variants
    keys: MemoryKeyProvider


@dataclass
class Part:
    """A stream of a stripe: `content` is decrypted; as stored it is encrypted again."""

    stream: Stream
    content: bytes


@dataclass
class StripeParts:
    information: proto.Message
    footer: proto.Message
    parts: list[Part]


@pytest.fixture(scope="module")
def bases(people: pa.Table) -> list[Base]:
    """Files of each codec, with and without encryption and dictionaries, of several stripes and row groups;
    and one that ORC's Java library wrote, through Spark.
    """
    keys = MemoryKeyProvider(KEYS)
    found = [opened((FIXTURES / "java-zlib.orc").read_bytes(), keys)]
    for codec, encrypt, threshold in product(CODECS, (ENCRYPT, None), (0.0, 1.0)):
        sink = io.BytesIO()
        settings: dict[str, Any] = {"compression": codec, "row_index_stride": 25, "stripe_size": 1000}
        if encrypt:
            settings |= {"encrypt": encrypt, "mask": "sha256:email", "keys": keys}
        write_table(
            people.select(COLUMNS).slice(0, 150),
            sink,
            bloom_filter_columns=["ssn", "id"],
            dictionary_key_size_threshold=threshold,
            **settings,
        )
        tagged = opened(sink.getvalue(), keys)
        found.append(opened(put_together(tagged, taken_apart(tagged), forget_tags), keys))
    return found


def opened(data: bytes, keys: MemoryKeyProvider) -> Base:
    tail = read_tail(open_source(data))
    return Base(data, tail, Variants(tail, keys), keys)


def forget_tags(footer: proto.Message) -> None:
    """Make it a file of others: with tags, damage would be found before anything is decoded."""
    del footer.metadata[:]
    for attribute in list(footer.types[0].attributes):
        footer.types[0].attributes.remove(attribute)


# --- taking a file apart, and putting it together with lengths that fit ---


def taken_apart(base: Base) -> list[StripeParts]:
    source, found = open_source(base.data), []
    for index in range(base.tail.stripes):
        stripe = read_stripe(source, base.tail, index)
        parts = [
            Part(each, crypted(base, each, index, bytes(source.read_at(each.offset, each.length))))
            for each in stripe.streams
        ]
        found.append(StripeParts(copied(base.tail.footer.stripes[index]), copied(stripe.footer), parts))
    return found


def crypted(base: Base, stream: Stream, stripe: int, data: bytes) -> bytes:
    if stream.variant is None or not data:
        return data
    key = base.variants.stripe_key(stream.variant, stripe)
    return crypt(key, stream.column, stream.kind, base.variants.stripe_id(stripe), data)


def copied(message: proto.Message) -> proto.Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def put_together(
    base: Base,
    stripes: list[StripeParts],
    change_footer: Callable[[proto.Message], Any],
    change_postscript: Callable[[proto.Message], Any] = lambda message: None,
    metadata: bytes | None = None,
    statistics: bytes | None = None,
) -> bytes:
    tail, out = base.tail, io.BytesIO()
    out.write(MAGIC)
    footer, postscript = copied(tail.footer), copied(tail.postscript)
    for index, stripe in enumerate(stripes):
        described = footer.stripes[index]
        described.offset = out.tell()
        for is_index in (True, False):
            start = out.tell()
            for part in stripe.parts:
                if (part.stream.kind in INDEX_KINDS) is is_index:
                    out.write(crypted(base, part.stream, index, part.content))
            setattr(described, "index_length" if is_index else "data_length", out.tell() - start)
        relist(stripe)
        content = frame(tail.codec, stripe.footer.SerializeToString(), tail.block_size)
        described.footer_length = out.write(content)
    footer.content_length = out.tell()
    kept = base.data[tail.stripe_statistics_offset : tail.metadata_offset]
    postscript.stripe_statistics_length = out.write(kept if statistics is None else statistics)
    stored = base.data[tail.metadata_offset : tail.footer_offset] if metadata is None else metadata
    postscript.metadata_length = out.write(stored)
    change_footer(footer)
    postscript.footer_length = out.write(frame(tail.codec, footer.SerializeToString(), tail.block_size))
    change_postscript(postscript)
    ending = postscript.SerializeToString()[:255]
    out.write(ending + bytes([len(ending)]))
    return out.getvalue()


def relist(stripe: StripeParts) -> None:
    """Put the lengths of streams that were changed into the stripe's footer."""
    lengths = {
        (part.stream.variant, part.stream.column, part.stream.kind): len(part.content)
        for part in stripe.parts
    }
    areas = [(None, stripe.footer.streams), *enumerate(each.streams for each in stripe.footer.encryption)]
    for variant, listed in areas:
        for stream in listed:
            if stream.kind not in PLACEHOLDERS:
                stream.length = lengths.get((variant, stream.column, stream.kind), stream.length)


# --- what is done to them ---


def numbers(rng: Rng, old: int) -> int:
    choices = (0, 1, 2, old + 1, max(old - 1, 0), old ^ (1 << rng.randrange(31)), 127, 255, 1 << 16)
    return rng.choice(
        [*choices, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
    )


def mutate_message(rng: Rng, message: proto.Message) -> None:
    """Change, drop, double or blow up one field somewhere in a message."""
    spots = list(fields_of(message))
    if not spots:
        return
    holder, field = rng.choice(spots)
    value = getattr(holder, field.name)
    if field.is_repeated and rng.random() < 0.4:
        change_list(rng, field, value)
        return
    if field.message_type is not None:
        holder.ClearField(field.name)
        return
    index = rng.randrange(len(value)) if field.is_repeated else None
    old = value if index is None else value[index]
    new = other_value(rng, field, old)
    try:
        if index is None:
            setattr(holder, field.name, new)
        else:
            value[index] = new
    except (ValueError, TypeError):  # it does not fit into the field
        holder.ClearField(field.name)


def fields_of(message: proto.Message) -> Iterator[tuple[proto.Message, Any]]:
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                yield from fields_of(each)


def change_list(rng: Rng, field: Any, value: Any) -> None:
    index = rng.randrange(len(value))
    action = rng.randrange(3)
    if action == 0:
        del value[index]
    elif action == 1:
        value.append(value[index])
    elif field.message_type is None:
        value.extend([value[index]] * rng.choice((10, 1000)))
    else:
        value.extend([value[index]] * rng.choice((1, 100)))


def other_value(rng: Rng, field: Any, old: Any) -> Any:
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        text = old if isinstance(old, bytes) else str(old).encode()
        new = rng.choice(
            (b"", b"1E999999999", b"-1E-999999999", b"NaN", text * 50, text[::-1], mutated_bytes(rng, text))
        )
        return new if field.type == field.TYPE_BYTES else new.decode(errors="replace")
    if field.type == field.TYPE_DOUBLE:
        return rng.choice((float("nan"), float("inf"), -0.0, 1e308))
    if field.type == field.TYPE_BOOL:
        return not old
    new_number = numbers(rng, int(old))
    return -new_number if rng.random() < 0.2 else new_number


def mutated_bytes(rng: Rng, data: bytes) -> bytes:
    """Flip, cut, insert, repeat or overwrite."""
    if not data:
        return rng.randbytes(rng.randrange(1, 20))
    changed = bytearray(data)
    action = rng.randrange(6)
    place = rng.randrange(len(changed))
    if action <= 1:
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif action == 2:
        del changed[place : place + rng.choice((1, 2, 16, len(changed)))]
    elif action == 3:
        changed[place:place] = rng.randbytes(rng.choice((1, 2, 3, 64)))
    elif action == 4:
        changed[place:place] = changed[place : place + 32] * rng.choice((1, 20))
    else:
        changed[place : place + 4] = rng.choice((bytes(4), b"\xff" * 4, rng.randbytes(4)))
    return bytes(changed)


def mutate_stream(rng: Rng, base: Base, stripes: list[StripeParts], only_index: bool) -> None:
    """Change what a stream holds below its encryption, and half of the time below its compression as well."""
    parts = [
        part
        for stripe in stripes
        for part in stripe.parts
        if part.content and (part.stream.kind in INDEX_KINDS or not only_index)
    ]
    part = rng.choice(parts)
    if rng.random() < 0.3:
        part.content = mutated_bytes(rng, part.content)
        return
    try:
        content = unframe(base.tail.codec, part.content, base.tail.block_size)
    except ValueError:  # it was changed before
        part.content = mutated_bytes(rng, part.content)
        return
    try:
        index = proto.RowIndex.FromString(content if part.stream.kind == StreamKind.ROW_INDEX else b"")
    except proto.DecodeError:
        index = None
    if index and index.entry and rng.random() < 0.8:
        mutate_message(rng, index)
        content = index.SerializeToString()
    else:
        content = mutated_bytes(rng, content)
    part.content = frame(base.tail.codec, content, base.tail.block_size)


def mutant(rng: Rng, base: Base) -> tuple[str, bytes]:
    """A damaged copy, and what kind of damage it has."""
    kind = rng.choice(KINDS)
    if kind == "bytes":
        return kind, mutated_bytes(rng, base.data)
    if kind == "cut":
        return kind, base.data[: rng.randrange(len(base.data))]
    stripes = taken_apart(base)
    footers: list[Callable[[proto.Message], None]] = []
    postscripts: list[Callable[[proto.Message], None]] = []
    metadata = statistics = None
    if kind == "tail":
        where = postscripts if rng.random() < 0.15 else footers
        where.extend([lambda message: mutate_message(rng, message)] * rng.choice((1, 1, 2, 4)))
    elif kind == "stripe footer":
        mutate_message(rng, rng.choice(stripes).footer)
    elif kind == "metadata":
        metadata = mutated_metadata(rng, base)
    elif kind == "file statistics":
        footers.append(lambda footer: mutate_file_statistics(rng, base, footer))
    elif kind == "stripe statistics":
        statistics, relisted = mutated_stripe_statistics(rng, base)
        footers.append(relisted)
    else:
        for _ in range(rng.choice((1, 1, 3))):
            mutate_stream(rng, base, stripes, only_index=kind == "index")
    return kind, put_together(
        base,
        stripes,
        lambda footer: [change(footer) for change in footers],
        lambda postscript: [change(postscript) for change in postscripts],
        metadata,
        statistics,
    )


def mutated_metadata(rng: Rng, base: Base) -> bytes:
    tail = base.tail
    stored = base.data[tail.metadata_offset : tail.footer_offset]
    if rng.random() < 0.3:
        return mutated_bytes(rng, stored)
    message = proto.Metadata.FromString(unframe(tail.codec, stored, tail.block_size))
    mutate_message(rng, message)
    return frame(tail.codec, message.SerializeToString(), tail.block_size)


def mutate_file_statistics(rng: Rng, base: Base, footer: proto.Message) -> None:
    """Change the statistics of the file, in the clear or encrypted."""
    variants = footer.encryption.variants
    if not variants or rng.random() < 0.4:
        mutate_message(rng, rng.choice(footer.statistics))
        return
    number = rng.randrange(len(variants))
    variant = variants[number]
    place = (variant.root, StreamKind.FILE_STATISTICS, base.tail.stripes + 1)
    variant.file_statistics = mutated_secret(
        rng, base, number, place, variant.file_statistics, proto.FileStatistics
    )


def mutated_stripe_statistics(rng: Rng, base: Base) -> tuple[bytes, Callable[[proto.Message], None]]:
    """Change the encrypted statistics of the stripes; returns them, and what lists their new lengths."""
    footer, offset = copied(base.tail.footer), base.tail.stripe_statistics_offset
    listed = [
        (number, stream)
        for number, variant in enumerate(footer.encryption.variants)
        for stream in variant.stripe_statistics
    ]
    chosen = rng.randrange(len(listed)) if listed else None
    found = []
    for index, (number, stream) in enumerate(listed):
        stored = base.data[offset : offset + stream.length]
        offset += stream.length
        if index == chosen:
            place = (stream.column, StreamKind.STRIPE_STATISTICS, base.tail.stripes + 1)
            stored = mutated_secret(rng, base, number, place, stored, proto.ColumnarStripeStatistics)
            stream.length = len(stored)
        found.append(stored)

    def relist(message: proto.Message) -> None:
        message.encryption.CopyFrom(footer.encryption)

    return b"".join(found), relist


def mutated_secret(
    rng: Rng, base: Base, variant: int, place: tuple[int, int, int], stored: bytes, kind: proto.Message
) -> bytes:
    """Change a message below its encryption."""
    key, tail = base.variants.footer_key(variant), base.tail
    content = unframe(tail.codec, crypt(key, *place, stored), tail.block_size)
    if rng.random() < 0.2:
        content = mutated_bytes(rng, content)
    else:
        message = kind.FromString(content)
        mutate_message(rng, message)
        content = message.SerializeToString()
    return crypt(key, *place, frame(tail.codec, content, tail.block_size))


# --- the cases ---


PREDICATES: list[Any] = [
    None,
    None,
    col("ssn") == "000007919",
    col("id") < 40,
    (col("salary") > 100) & (col("email") == "person3@example.org"),
    col("seen").is_null() | (col("score") > 20.0),
]


def metadata_of(rng: Rng, data: bytes, keys: Any) -> None:
    """Parse all that is parsed in this process; no stream of data is decoded."""
    with EncryptedOrcFile(data, keys, isolate=Isolation(DEADLINE)) as file:
        assert repr(file)
        assert file.schema is not None
        assert file.statistics is not None
        assert file.stripe_statistics is not None
    assert str(inspect_file(data, keys))


def rows_of(rng: Rng, data: bytes, keys: Any) -> None:
    """Read rows, some of them, or some columns."""
    unit = rng.choice(("ns", "us"))
    with EncryptedOrcFile(data, keys, timestamp_unit=unit, isolate=Isolation(DEADLINE)) as file:
        table = file.read(rng.choice((None, rng.sample(PROJECTED, 3))), rng.choice(PREDICATES))
        # What is handed out is sound: no offset leads outside.
        table.validate(full=True)


def run(number: int, bases: list[Base], act: Callable[[Rng, bytes, Any], None]) -> tuple[str, str]:
    """One case: the kind of damage, and the outcome."""
    rng = random.Random(f"lockgate fuzz {number}")
    base = rng.choice(bases)
    kind, data = mutant(rng, base)
    try:
        act(rng, data, base.keys if rng.random() < 0.9 else None)
    except LockgateError as error:
        text = str(error)
        died = (
            " (process died)" if "crashed" in text else " (deadline)" if "not decoded within" in text else ""
        )
        return kind, f"{type(error).__name__}{died}"
    return kind, "rows"


@contextmanager
def limited() -> Iterator[None]:
    """Let this process allocate `ROOM` bytes more than it has, and notice if it hangs."""
    with open("/proc/self/status") as status:
        held = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    before = signal.signal(signal.SIGALRM, stuck)
    resource.setrlimit(resource.RLIMIT_DATA, (held + ROOM, hard))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def stuck(*_: Any) -> None:
    raise AssertionError(f"it has not ended for {STUCK_SECONDS} s")


def survive(
    numbers: range, bases: list[Base], act: Callable[[Rng, bytes, Any], None]
) -> Counter[tuple[str, str]]:
    """Run cases; returns how often each kind of damage had each outcome."""
    outcomes: Counter[tuple[str, str]] = Counter()
    slowest = (0.0, 0)
    with warnings.catch_warnings(), limited():
        warnings.simplefilter("ignore", MaskedDataWarning)
        for number in numbers:
            started = time.monotonic()
            signal.alarm(STUCK_SECONDS)
            try:
                outcomes[run(number, bases, act)] += 1
            except Exception as error:
                raise AssertionError(f"case {number} ended with {type(error).__name__}: {error}") from error
            slowest = max(slowest, (time.monotonic() - started, number))
    print(f"slowest: {slowest[0]:.2f} s, case {slowest[1]}")
    for (kind, outcome), times in sorted(outcomes.items()):
        print(f"{times:6} {kind}: {outcome}")
    return outcomes


def check(outcomes: Counter[tuple[str, str]]) -> None:
    """Every kind of damage occurred; some was found, and some cannot be."""
    assert {kind for kind, _ in outcomes} == set(KINDS)
    found = {kind for kind, outcome in outcomes if outcome != "rows"}
    assert found >= {"bytes", "cut", "tail", "stripe footer", "metadata"}


def test_a_base_that_is_not_mutated_is_sound(bases: list[Base]) -> None:
    """Taking apart and putting together loses nothing, so that what is found is due to the mutation."""
    for base in bases:
        again = put_together(base, taken_apart(base), lambda footer: None)
        with EncryptedOrcFile(base.data, base.keys) as first, EncryptedOrcFile(again, base.keys) as second:
            assert second.read().equals(first.read())
            assert second.stripe_statistics == first.stripe_statistics
            assert first.integrity == second.integrity == "absent"


def test_metadata_of_mutants(bases: list[Base]) -> None:
    check(survive(range(800), bases, metadata_of))


def test_rows_of_mutants(bases: list[Base]) -> None:
    outcomes = survive(range(800), bases, rows_of)
    check(outcomes)
    assert outcomes["stream", "CorruptFileError"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_metadata_of_ten_thousand_mutants(bases: list[Base]) -> None:
    check(survive(range(100_000, 110_000), bases, metadata_of))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_rows_of_ten_thousand_mutants(bases: list[Base]) -> None:
    check(survive(range(200_000, 210_000), bases, rows_of))
