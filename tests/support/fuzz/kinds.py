"""The types of random columns, with values that lie on their edges."""

from __future__ import annotations

from dataclasses import dataclass

FLAT = "flat"
NESTED = "nested"


@dataclass(frozen=True)
class Kind:
    """A type by its name in SQL: literals of it, types it may be widened to, and what it takes part in."""

    sql: str
    literals: tuple[str, ...]
    wider: tuple[str, ...] = ()
    family: str = FLAT
    key: bool = True

    @property
    def text(self) -> bool:
        """Whether LIKE and its kin apply."""
        return self.sql == "STRING" or self.sql.startswith(("VARCHAR", "CHAR"))

    @property
    def number(self) -> bool:
        """Whether it compares with numbers of other types."""
        return self.whole or self.floating or self.sql.startswith("DECIMAL")

    @property
    def whole(self) -> bool:
        """Whether it is an integer."""
        return self.sql in ("TINYINT", "SMALLINT", "INT", "BIGINT")

    @property
    def floating(self) -> bool:
        """Whether it has NaN and two zeros."""
        return self.sql in ("FLOAT", "DOUBLE")

    @property
    def time(self) -> bool:
        """Whether it has a year."""
        return self.sql in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


def _whole(sql: str, suffix: str, bits: int, *wider: str) -> Kind:
    top = 2 ** (bits - 1) - 1
    least = f"CAST('{-top - 1}' AS {sql})"
    values = tuple(f"{value}{suffix}" for value in (0, 1, -1, 2, 3, 5, 7, top))
    return Kind(sql, (*values, least), wider)


def _floating(sql: str, suffix: str, *wider: str) -> Kind:
    values = ("0.0", "-0.0", "1.5", "-2.5", "0.1", "3.0", "111.321")
    odd = tuple(f"CAST('{value}' AS {sql})" for value in ("NaN", "Infinity", "-Infinity"))
    return Kind(sql, (*(value + suffix for value in values), *odd), wider, key=False)


def _decimal(precision: int, scale: int, *wider: str) -> Kind:
    sql = f"DECIMAL({precision},{scale})"
    top = "9" * (precision - scale) + "." + "9" * scale
    values = ("0", "1", "-1", "1.25", "-2.50", "3.1", "111.32", top, f"-{top}")
    return Kind(sql, tuple(f"CAST('{value}' AS {sql})" for value in values), wider)


TEXTS = ("", "a", "ab", "abc", "b%", "a_b", "é", "v1", "v12", "Zz", "a b")
LONG = ("the same sixteen characters 1", "the same sixteen characters 2", "\U0001f600 smile", "\uffff")


def _texts(sql: str, *more: str, key: bool = True, wider: tuple[str, ...] = ()) -> Kind:
    return Kind(sql, tuple(f"CAST('{text}' AS {sql})" for text in (*TEXTS, *more)), wider, key=key)


_DAYS = ("1970-01-01", "1969-12-31", "2024-02-29", "2024-03-01", "0001-01-01", "9999-12-31", "1582-10-15")
_TIMES = (
    "1970-01-01 00:00:00",
    "2024-02-29 12:30:00.123456",
    "2024-02-29 12:30:00.123",
    "1969-12-31 23:59:58.5",
    "1900-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "2024-03-01 00:00:00",
)

KINDS: dict[str, Kind] = {
    kind.sql: kind
    for kind in (
        Kind("BOOLEAN", ("true", "false")),
        _whole("TINYINT", "Y", 8, "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(18,4)"),
        _whole("SMALLINT", "S", 16, "INT", "BIGINT", "FLOAT"),
        _whole("INT", "", 32, "BIGINT", "DOUBLE", "DECIMAL(18,4)"),
        _whole("BIGINT", "L", 64, "DECIMAL(38,10)"),
        _floating("FLOAT", "F", "DOUBLE"),
        _floating("DOUBLE", "D"),
        _decimal(5, 2, "DECIMAL(18,4)", "DECIMAL(38,10)"),
        _decimal(18, 4, "DECIMAL(38,10)"),
        _decimal(38, 10),
        _texts("STRING", *LONG),
        _texts("VARCHAR(8)", wider=("STRING",)),
        _texts("CHAR(5)", key=False, wider=("STRING",)),
        Kind("BINARY", ("X''", "X'00'", "X'FF'", "X'6162'", "X'61626300'", "X'80'"), key=False),
        Kind("DATE", tuple(f"DATE'{day}'" for day in _DAYS)),
        Kind("TIMESTAMP", tuple(f"TIMESTAMP'{time}'" for time in _TIMES), key=False),
        Kind("TIMESTAMP_NTZ", tuple(f"TIMESTAMP_NTZ'{time}'" for time in _TIMES), key=False),
        Kind(
            "STRUCT<x: INT, y: STRING, deep: STRUCT<b: BOOLEAN, d: DOUBLE>>",
            (
                "named_struct('x', 1, 'y', 'a', 'deep', named_struct('b', true, 'd', 0.0D))",
                "named_struct('x', 2, 'y', CAST(NULL AS STRING), "
                "'deep', named_struct('b', false, 'd', double('NaN')))",
                "named_struct('x', CAST(NULL AS INT), 'y', 'ab', 'deep', "
                "CAST(NULL AS STRUCT<b: BOOLEAN, d: DOUBLE>))",
            ),
            family=NESTED,
            key=False,
        ),
        Kind(
            "ARRAY<INT>",
            ("array(1, 2)", "CAST(array() AS ARRAY<INT>)", "array(CAST(NULL AS INT))", "array(7, NULL, 1)"),
            family=NESTED,
            key=False,
        ),
        Kind(
            "MAP<STRING, DATE>",
            ("map('a', DATE'2024-02-29')", "map('a', CAST(NULL AS DATE), 'b', DATE'1970-01-01')"),
            family=NESTED,
            key=False,
        ),
    )
}


@dataclass(frozen=True)
class Column:
    """A column of a random table."""

    name: str
    kind: Kind
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """As CREATE TABLE has it."""
        return f"{self.name} {self.kind.sql}" + ("" if self.nullable else " NOT NULL")
