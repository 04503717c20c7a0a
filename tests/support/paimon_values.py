"""Columns of every type that Paimon has, and four rows of them; values are spelled as in `exact_rows`."""

from __future__ import annotations

from typing import Any

from exact_rows import Rows, pairs
from paimon_java import structure

SECOND = 10**9
DATES = {"type": "ARRAY", "element": "DATE"}
STRINGS = {"type": "ARRAY", "element": "STRING"}
MOMENT = structure(("when", "TIMESTAMP(6)"), ("raw", "BYTES"))
# The type of a column and its values in three rows; a fourth row holds nulls.
VALUES: dict[str, tuple[Any, Any, Any, Any]] = {
    "f_bool": ("BOOLEAN", True, False, None),
    "f_tiny": ("TINYINT", -128, 127, 0),
    "f_small": ("SMALLINT", -32768, 32767, 0),
    "f_int": ("INT", -(2**31), 2**31 - 1, 0),
    "f_big": ("BIGINT", -(2**63), 2**63 - 1, 0),
    "f_float": ("FLOAT", 1.5, "NaN", "-Infinity"),
    "f_double": ("DOUBLE", -1e300, "Infinity", -0.0),
    "f_dec": ("DECIMAL(10, 2)", "12345678.90", "-0.01", "0.00"),
    "f_long_dec": ("DECIMAL(18, 0)", "999999999999999999", "-1", "0"),
    "f_wide_dec": ("DECIMAL(38, 10)", "1.5000000000", "-" + "9" * 28 + ".9999999999", "0.0000000000"),
    "f_string": ("STRING", "ü", "", "日本語 text"),
    "f_varchar": ("VARCHAR(9)", "nine", "", "123456789"),
    "f_bytes": ("BYTES", "00ff", "", "deadbeef"),
    "f_binary": ("BINARY(4)", "01020304", "00000000", "ffffffff"),
    "f_varbinary": ("VARBINARY(8)", "0a", "", "0102030405060708"),
    "f_date": ("DATE", -719_162, 2_932_896, 0),
    "f_ts0": ("TIMESTAMP(0)", 0, -5 * SECOND, 951_827_696 * SECOND),
    "f_ts3": ("TIMESTAMP(3)", 1_000_000, -SECOND, 999_000_000),
    "f_ts6": ("TIMESTAMP(6)", 123_456_000, 253_402_300_799_999_999_000, 999_999_000),
    "f_ltz3": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", 2_000_000, -86_400 * SECOND, 1_000_000),
    "f_ltz6": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", 1_600_000_000_123_456_000, 4_102_444_800 * SECOND, 1_000),
    "f_array": ({"type": "ARRAY", "element": "INT"}, [1, None, 3], [], [2_147_483_647]),
    "f_map": (
        {"type": "MAP", "key": "STRING NOT NULL", "value": "DECIMAL(5, 1)"},
        pairs(("k", "1.5"), ("", None)),
        [],
        pairs(("z", "-9999.9")),
    ),
    "f_row": (structure(("x", "INT"), ("y", MOMENT)), [7, [1_000, "ff"]], [None, None], [None, [None, None]]),
    "f_rows": (
        {"type": "ARRAY", "element": structure(("a", "STRING"), ("b", DATES))},
        [["a", [0, None]], None, [None, []]],
        [],
        [[None, None]],
    ),
    "f_deep": (
        {"type": "MAP", "key": "INT NOT NULL", "value": STRINGS},
        pairs((1, ["x"]), (2, [])),
        [],
        pairs((-1, [None, ""])),
    ),
}
COLUMNS = [("id", "BIGINT NOT NULL"), ("part", "INT"), *((name, kind) for name, (kind, *_) in VALUES.items())]
ROWS: Rows = [
    *([at, at % 2, *(column[at] for column in VALUES.values())] for at in (1, 2, 3)),
    [4, 1, *(None for _ in VALUES)],
]
