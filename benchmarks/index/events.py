"""Events as security tools log them: skewed hosts, users and programs; hashes that mostly come back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXT = (
    "update sync agent backup service helper report invoice chrome office driver kernel audit vault proxy "
    "mail print cache node build deploy docker python java perl bash power shell net user group local admin "
    "domain query export import zip curl cert util task sched host run temp data log trace event monitor scan"
)
WORDS = TEXT.split()
HOSTS, USERS, PROGRAMS, HASHES = 20_000, 30_000, 3_000, 20_000
ROWS_A_DAY = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("host", pa.string()),
        ("user", pa.string()),
        ("path", pa.string()),
        ("command", pa.string()),
        ("md5", pa.string()),
        ("bytes", pa.int64()),
    ]
)


class Events:
    """A stream of events, the same for each seed."""

    def __init__(self, seed: int = 7) -> None:
        chance = np.random.default_rng(seed)

        def names(count: int, text: str) -> pa.Array:
            words = (WORDS[number] for number in chance.integers(0, len(WORDS), count))
            return pa.array([text.format(word, number) for number, word in enumerate(words)])

        self.hosts = names(HOSTS, "{}-{:05d}")
        self.users = names(USERS, "{}.{}")
        self.programs = names(PROGRAMS, "C:\\Program Files\\{0}\\{0}{1}.exe")
        self.hashes = _digits(chance, HASHES, 32)
        self._seed = seed

    def files(self, rows: int, rows_a_file: int) -> Iterator[pa.Table]:
        """Yield the rows of each file, in order of time."""
        for number in range(rows // rows_a_file):
            yield self._file(np.random.default_rng((self._seed, number)), number * rows_a_file, rows_a_file)

    def _file(self, chance: np.random.Generator, first: int, rows: int) -> pa.Table:
        host, program = _skewed(chance, HOSTS, rows, 2.5), _skewed(chance, PROGRAMS, rows, 3)
        path = self.programs.take(pa.array(program))
        tail = pc.if_else(pa.array(chance.random(rows) < 0.35), _digits(chance, rows, 16), "")
        usual = self.hashes.take(pa.array((program * 6 + _skewed(chance, 6, rows, 4)) % HASHES))
        rare = pa.array(chance.random(rows) < 0.05)
        when = (first + np.arange(rows)) * (86_400_000_000 // ROWS_A_DAY) + 1_760_000_000_000_000
        columns = [
            pa.array(when, pa.timestamp("us")),
            self.hosts.take(pa.array(host)),
            self.users.take(pa.array((host * 3 // 2 + _skewed(chance, 40, rows, 3)) % USERS)),
            path,
            pc.binary_join_element_wise('"', path, '" /run ', tail, ""),
            pc.if_else(rare, _digits(chance, rows, 32), usual),
            pa.array((chance.pareto(1.1, rows) * 300).clip(0, 2**50).astype(np.int64)),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)


def _skewed(chance: np.random.Generator, most: int, rows: int, power: float) -> np.ndarray:
    return (most * chance.random(rows) ** power).astype(np.int64)


def _digits(chance: np.random.Generator, count: int, width: int) -> pa.Array:
    """Return random texts of hexadecimal digits."""
    raw = np.frombuffer(b"0123456789abcdef", np.uint8)[chance.integers(0, 16, count * width)]
    ends = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(raw.tobytes())]
    )
