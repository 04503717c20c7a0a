"""Every type x every comparison x what stands around it, as SQL, and tables in whose files it can go wrong.

A table's files have row groups of their own kinds: low values, high ones, nulls alone, one value, extremes,
all of them. `conditions` lists all conditions. A test asks some of them, each in the same words as a filter,
which is pushed down, and as a column of the result, which is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pool:
    """The values of a type: two low ones, two high ones, and the odd ones."""

    low: tuple[str, ...]
    high: tuple[str, ...]
    odd: tuple[str, ...]

    def of(self, shape: str) -> tuple[str, ...]:
        """Return what the rows of a row group hold in turn."""
        mixed = (*self.low, *self.high, "NULL", *self.odd)
        groups = {"low": self.low, "high": self.high, "odd": self.odd, "null": ("NULL",), "mixed": mixed}
        return groups.get(shape, self.low[:1])


def _texts(odd: str = "'', ' ', 'ab ', '\uff5e', '\U0001f600', '\ue000'") -> Pool:
    return Pool(("'ab'", "'abc'"), ("'xa'", "'xé'"), tuple(odd.split(", ")))


def _whole(suffix: str, least: str, most: str) -> Pool:
    return Pool((f"-3{suffix}", f"-2{suffix}"), (f"7{suffix}", f"8{suffix}"), (least, most, f"0{suffix}"))


def _floats(kind: str) -> Pool:
    odd = ("NaN", "-0.0", "0.0", "Infinity", "-Infinity", "1.0E-40", "3.0E38")
    pools = (("-1.5", "-1.25"), ("2.5", "3.1"), odd)
    return Pool(*(tuple(f"{kind}('{value}')" for value in values) for values in pools))


def _times(kind: str, *groups: str) -> Pool:
    return Pool(*(tuple(f"{kind} '{value}'" for value in group.split(", ")) for group in groups))


_CLOCKS = (
    "1500-02-28 01:02:03.5, 1582-10-04 00:00:00",
    "2024-02-29 12:30:00.123456, 2024-03-01 00:00:00",
    "0001-01-01 00:00:00, 9999-12-31 23:59:59.999999, 1582-10-15 00:00:00, 1969-12-31 23:59:58.5, "
    "1970-01-01 00:00:00",
)
KINDS: dict[str, Pool] = {
    "BOOLEAN": Pool(("false",), ("true",), ("true", "false", "false")),
    "TINYINT": _whole("Y", "-128Y", "127Y"),
    "SMALLINT": _whole("S", "-32768S", "32767S"),
    "INT": _whole("", "-2147483648", "2147483647"),
    "BIGINT": _whole("L", "-9223372036854775808L", "9223372036854775807L"),
    "FLOAT": _floats("float"),
    "DOUBLE": _floats("double"),
    "DECIMAL(9, 2)": Pool(("-3.25", "-3.20"), ("7.5", "8.00"), ("-9999999.99", "9999999.99", "0")),
    "DECIMAL(30, 10)": Pool(
        ("-3.25", "-3.2"), ("7.5", "8.0000000001"), ("-99999999999999999999.9", "99999999999999999999.9", "0")
    ),
    "CHAR(4)": _texts(),
    "VARCHAR(6)": _texts(),
    "STRING": _texts(),
    "BINARY": Pool(("X'0102'", "X'0103'"), ("X'7F'", "X'80'"), ("X''", "X'FF'", "X'00'")),
    "DATE": _times(
        "DATE",
        "1500-02-28, 1582-10-04",
        "2024-02-29, 2024-03-01",
        "0001-01-01, 9999-12-31, 1582-10-15, 1582-10-16, 1970-01-01",
    ),
    "TIMESTAMP_NTZ": _times("TIMESTAMP_NTZ", *_CLOCKS),
    "TIMESTAMP": _times("TIMESTAMP", *_CLOCKS),
}
COLUMNS = {f"c{i}": kind for i, kind in enumerate(KINDS)}
# The row groups of each file; a file of more than one group has whole ones, which ORC makes of 1,000 rows.
FILES = (("low", "null", "high", "mixed"), ("one",), ("null",), ("odd",), ("mixed", "odd"))
GROUP = 1000
SMALL = 30


def definition() -> str:
    """Return the columns of the table; `o` is 5 in every row."""
    return ", ".join(["id INT NOT NULL", "o INT", *(f"{name} {kind}" for name, kind in COLUMNS.items())])


def queries() -> Iterator[str]:
    """Yield the rows of each file, as SQL."""
    start = 0
    for groups in FILES:
        rows = GROUP if len(groups) > 1 else SMALL
        parts = []
        for shape in groups:
            parts.append(f"SELECT {_row(shape, start)} FROM range(0, {rows}, 1, 1)")
            start += rows
        yield " UNION ALL ".join(parts)


def _row(shape: str, start: int) -> str:
    values = [f"CAST(id + {start} AS INT) AS id", "5 AS o"]
    for name, kind in COLUMNS.items():
        pool = KINDS[kind].of(shape)
        values.append(f"CAST(array({', '.join(pool)})[id % {len(pool)}] AS {kind}) AS {name}")
    return ", ".join(values)


def conditions() -> list[str]:
    """Return every condition, in an order that depends on nothing."""
    return [
        text
        for i, (name, kind) in enumerate(COLUMNS.items())
        for j, leaf in enumerate(leaves(name, kind))
        for text in around(leaf, _other(i + j))
    ]


def leaves(name: str, kind: str) -> Iterator[str]:
    """Yield the comparisons of a column."""
    pool = KINDS[kind]
    values = list(dict.fromkeys((*pool.low, *pool.high, *pool.odd)))
    for value, next_value in zip(values, [*values[1:], values[0]], strict=True):
        yield from (f"{name} {op} {value}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>"))
        yield f"{value} < {name}"
        yield f"{name} IN ({value}, {next_value})"
        yield f"{name} NOT IN ({value}, {next_value})"
        yield f"{name} BETWEEN {value} AND {next_value}"
    yield from (
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"{name} <=> NULL",
        f"{name} IN ({values[0]}, NULL)",
    )
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        # Spark finds what no value fulfils, and makes a null of it.
        yield from (f"{name} {op} 1.5BD" for op in ("=", "<>", "<", "<=>"))
        yield from (f"{name} IN (1.5BD, 2.5BD)", f"{name} = 99999999999999999999", f"{name} = -0.5D")
    if kind == "BOOLEAN":
        yield name
    if kind in ("STRING", "VARCHAR(6)", "CHAR(4)"):
        yield from (
            f"{name} LIKE '{pattern}'" for pattern in ("ab%", "%c", "%b%", "a%c", "x_", "ab", "\U0001f600%")
        )
        yield f"{name} RLIKE '^a.c?'"


def around(leaf: str, other: str) -> Iterator[str]:
    """Yield a comparison alone, and in what can stand around it."""
    yield leaf
    yield f"NOT ({leaf})"
    yield f"o IS NULL OR {leaf}"
    yield f"id < 0 OR NOT ({leaf})"
    yield f"{leaf} AND id >= 0"
    yield f"({leaf} OR o > 7) AND NOT (o = 6)"
    yield f"NOT (o > 7 OR NOT ({leaf}))"
    yield f"{leaf} OR {other}"
    yield f"({leaf} AND {other}) OR (o = 5 AND NOT ({other}))"
    yield f"({leaf}) IS NOT TRUE"
    yield f"coalesce({leaf}, {other}, FALSE)"
    yield f"({leaf} AND o = 5) <=> ({other} OR o = 1.5BD)"
    yield f"(({leaf}) IS NOT FALSE) IS NULL OR NOT (({other}) IS NOT TRUE)"


def _other(number: int) -> str:
    names = list(COLUMNS)
    name = names[number * 7 % len(names)]
    values = KINDS[COLUMNS[name]].low + KINDS[COLUMNS[name]].high
    return f"{name} {('<', '>', '=', '<>')[number % 4]} {values[number % len(values)]}"


def as_filters(table: str, asked: Sequence[str]) -> str:
    """Return a query for (number, rows, sum) of each condition, asked as filters in one query."""
    branches = " UNION ALL ".join(
        f"SELECT {i} AS asked, CAST(id AS BIGINT) AS id FROM {table} WHERE {text}"
        for i, text in enumerate(asked)
    )
    return f"SELECT asked, count(id), sum(id * id) FROM ({branches}) GROUP BY asked"


def as_columns(table: str, asked: Sequence[str]) -> str:
    """Return a query for (rows, sum) of each condition one after the other, none of them a filter."""
    sums = ", ".join(f"count_if({text}), sum(IF({text}, CAST(id AS BIGINT) * id, 0))" for text in asked)
    return f"SELECT {sums} FROM {table}"


def parts(asked: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    """Cut conditions into parts of a query each."""
    return (asked[start : start + size] for start in range(0, len(asked), size))
