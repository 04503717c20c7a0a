"""Mutated files: reading one ends with rows or with an error of ours, and this process lives on.

Every case is named by a number that it follows from alone, so a failure can be run again by itself:
`run(case_number, ...)`.
"""

from __future__ import annotations

import importlib.util
import io
import random
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError, MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import (
    EncryptedOrcFile,
    Isolation,
    audit_file,
    decrypt_file,
    inspect_file,
    rekey,
    verify_file,
    write_table,
)
from lockgate.pushdown import col

CODECS = ("zstd", "snappy", "zlib", "lz4", "none")
COLUMNS = ["id", "ssn", "email", "salary", "active", "score", "born", "seen", "raw", "tags", "address"]
# Those that are in all files.
PROJECTED = ["id", "ssn", "email", "salary", "score", "seen", "tags"]
ENCRYPT = "pii:ssn,email,score,seen,tags;fin:salary,address"
# The keys of the file that Java wrote; the others are written with them as well.
KEYS = {"pii@0": bytes(range(16)), "fin@0": bytes(range(32))}
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "orc"
CASES = [200, pytest.param(500, marks=pytest.mark.long)]
DEADLINE = 2.0
# No case takes nearly as long, so one that does hangs.
STUCK_SECONDS = 60
# This process may allocate so much more than it holds: a length in a file must not decide how much.
ROOM = 1 << 30


def load_mutants() -> ModuleType:
    """The module next to this one; tests are no package."""
    spec = importlib.util.spec_from_file_location("lockgate_mutants", Path(__file__).with_name("mutants.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


mutants = load_mutants()
Base, Rng = Any, random.Random


@pytest.fixture(scope="module")
def bases(people: pa.Table) -> list[Base]:
    """Files of each codec, with and without encryption and dictionaries, of several stripes and row groups;
    and one that ORC's Java library wrote, through Spark.
    """
    keys = MemoryKeyProvider(KEYS)
    found = [mutants.opened((FIXTURES / "java-zlib.orc").read_bytes(), keys)]
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
        tagged = mutants.opened(sink.getvalue(), keys)
        found.append(
            mutants.opened(
                mutants.put_together(tagged, mutants.taken_apart(tagged), mutants.remove_tags), keys
            )
        )
    return found


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
    """Parse everything that this process parses; no data stream is decoded."""
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


def copies_of(rng: Rng, data: bytes, keys: Any) -> None:
    """Copy without encryption or under new keys, or check, without decoding."""
    act = rng.choice(
        (
            lambda: decrypt_file(data, io.BytesIO(), keys),
            lambda: rekey(data, io.BytesIO(), keys),
            lambda: verify_file(data, keys),
            lambda: audit_file(data, {"ssn": "pii", "tags": "fin"}, keys),
        )
    )
    act()


def run(number: int, bases: list[Base], act: Callable[[Rng, bytes, Any], None]) -> tuple[str, str]:
    """One case: the kind of damage, and the outcome."""
    rng = random.Random(f"lockgate fuzz {number}")
    base = rng.choice(bases)
    kind, data = mutants.mutant(rng, base)
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
    """Every kind of damage occurred; some of it was detected, some is undetectable."""
    assert {kind for kind, _ in outcomes} == set(mutants.KINDS)
    found = {kind for kind, outcome in outcomes if outcome != "rows"}
    assert found >= {"bytes", "cut", "tail", "stripe footer", "metadata"}


def test_an_unchanged_base_is_readable(bases: list[Base]) -> None:
    """Disassembly and assembly lose nothing, so every error is due to the mutation."""
    for base in bases:
        again = mutants.put_together(base, mutants.taken_apart(base), lambda footer: None)
        with EncryptedOrcFile(base.data, base.keys) as first, EncryptedOrcFile(again, base.keys) as second:
            assert second.read().equals(first.read())
            assert second.stripe_statistics == first.stripe_statistics
            assert first.integrity == second.integrity == "absent"


@pytest.mark.parametrize("cases", CASES)
def test_metadata_of_mutants(bases: list[Base], cases: int) -> None:
    check(survive(range(cases), bases, metadata_of))


@pytest.mark.parametrize("cases", CASES)
def test_rows_of_mutants(bases: list[Base], cases: int) -> None:
    outcomes = survive(range(cases), bases, rows_of)
    check(outcomes)
    assert outcomes["stream", "CorruptFileError"]


def test_copies_of_mutants(bases: list[Base]) -> None:
    outcomes = survive(range(400), bases, copies_of)
    assert {outcome for _, outcome in outcomes} >= {"rows", "CorruptFileError", "InputError"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_copies_of_ten_thousand_mutants(bases: list[Base]) -> None:
    check(survive(range(300_000, 310_000), bases, copies_of))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_metadata_of_ten_thousand_mutants(bases: list[Base]) -> None:
    check(survive(range(100_000, 110_000), bases, metadata_of))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_rows_of_ten_thousand_mutants(bases: list[Base]) -> None:
    check(survive(range(200_000, 210_000), bases, rows_of))
