"""Events as security tools log them: skewed hosts, users, programs and domains; hashes that mostly come back.

A row has 13 columns, and takes about 60 bytes as ORC.
"""

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
DOMAINS, ARGUMENTS = 300_000, 400
TOOLS = (
    *("mimikatz", "rubeus", "bloodhound", "psexesvc", "lazagne", "wceaux", "gsecdump", "pwdumpx"),
    *("sharphound", "impacketx", "koadic", "sliverc2"),
)
TOOL_SHARE = 4e-6
KINDS = ("process", "file", "registry", "connection", "query", "login", "usb", "mail", "print", "web")
ROWS_A_DAY = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("host", pa.string()),
        ("user", pa.string()),
        ("ip", pa.string()),
        ("dst", pa.string()),
        ("domain", pa.string()),
        ("path", pa.string()),
        ("command", pa.string()),
        ("md5", pa.string()),
        ("kind", pa.string()),
        ("severity", pa.int32()),
        ("bytes", pa.int64()),
        ("pid", pa.int32()),
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
        self.domains = names(DOMAINS, "{}{:x}.example.net")
        self.arguments = names(ARGUMENTS, " /{}:{}")
        self.hashes = _digits(chance, HASHES, 32)
        self._seed = seed

    def files(self, rows: int, rows_a_file: int) -> Iterator[pa.Table]:
        """Yield the rows of each file, in order of time."""
        for number in range(rows // rows_a_file):
            yield self._file(np.random.default_rng((self._seed, number)), number * rows_a_file, rows_a_file)

    def _file(self, chance: np.random.Generator, first: int, rows: int) -> pa.Table:
        host, program = _skewed(chance, HOSTS, rows, 2.5), _skewed(chance, PROGRAMS, rows, 3)
        users = self.users.take(pa.array((host * 3 // 2 + _skewed(chance, 40, rows, 3)) % USERS))
        path = self._paths(chance, program, users)
        usual = self.hashes.take(pa.array((program * 6 + _skewed(chance, 6, rows, 4)) % HASHES))
        when = (first + np.arange(rows)) * (86_400_000_000 // ROWS_A_DAY) + 1_760_000_000_000_000
        late = chance.exponential(60_000_000, rows).astype(np.int64)
        named = self.domains.take(pa.array(_skewed(chance, DOMAINS, rows, 4)))
        columns = [
            pa.array(when + late, pa.timestamp("us")),
            self.hosts.take(pa.array(host)),
            users,
            _address(np.full(rows, 10), host >> 12, host >> 4, host * 16 + chance.integers(0, 4, rows)),
            _address(*(_skewed(chance, 2**31, rows, 4) >> shift for shift in (24, 16, 8, 0))),
            pc.if_else(pa.array(chance.random(rows) < 0.3), pa.scalar(None, pa.string()), named),
            path,
            self._commands(chance, program, path),
            pc.if_else(pa.array(chance.random(rows) < 0.05), _digits(chance, rows, 32), usual),
            pa.array(KINDS).take(pa.array(_skewed(chance, len(KINDS), rows, 2))),
            pa.array(_skewed(chance, 5, rows, 5), pa.int32()),
            pa.array((chance.pareto(1.1, rows) * 300).clip(0, 2**50).astype(np.int64)),
            pa.array(chance.integers(4, 65_536, rows), pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _paths(self, chance: np.random.Generator, program: np.ndarray, users: pa.Array) -> pa.Array:
        """Return paths of programs: two of a hundred have random names, a few of a million are hunted."""
        names = _digits(chance, len(program), 8)
        own = pc.binary_join_element_wise("C:\\Users\\", users, "\\AppData\\Temp\\", names, ".exe", "")
        is_own = pa.array(chance.random(len(program)) < 0.02)
        usual = pc.if_else(is_own, own, self.programs.take(pa.array(program)))
        tools = pa.array([f"C:\\Users\\Public\\{tool}.exe" for tool in TOOLS])
        tool = tools.take(pa.array(chance.integers(0, len(TOOLS), len(program))))
        return pc.if_else(pa.array(chance.random(len(program)) < TOOL_SHARE), tool, usual)

    def _commands(self, chance: np.random.Generator, program: np.ndarray, path: pa.Array) -> pa.Array:
        """Return command lines, a third of which ends with random digits."""
        number = (program * 7 + _skewed(chance, 12, len(program), 2)) % ARGUMENTS
        digits = pc.binary_join_element_wise(" {", _digits(chance, len(program), 16), "}", "")
        tail = pc.if_else(pa.array(chance.random(len(program)) < 0.35), digits, "")
        return pc.binary_join_element_wise('"', path, '"', self.arguments.take(pa.array(number)), tail, "")


def _address(*parts: np.ndarray) -> pa.Array:
    """Return addresses of the low bytes of four numbers."""
    texts = [pa.array(part & 255).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, ".")


def _skewed(chance: np.random.Generator, most: int, rows: int, power: float) -> np.ndarray:
    return (most * chance.random(rows) ** power).astype(np.int64)


def _digits(chance: np.random.Generator, count: int, width: int) -> pa.Array:
    """Return random texts of hexadecimal digits."""
    raw = np.frombuffer(b"0123456789abcdef", np.uint8)[chance.integers(0, 16, count * width)]
    ends = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(raw.tobytes())]
    )
