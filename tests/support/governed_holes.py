"""Statements that try to reach what policies hide, for every kind of table and every door.

Nothing here needs Spark or Lockgate: clients of a Connect server import it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = {
    "append": "lake.holes.append",
    "key": "lake.holes.keyed",
    "files": "spark_catalog.default.holes",
    "folders": "folders.db.holes",
}
KINDS = tuple(TABLES)
USERS = ("ann", "bob")
COLUMNS = "id BIGINT NOT NULL, name STRING, n INT, dept STRING, pay INT"
# Ann may see the rows of ann, and bob those of bob. Nobody sees pay, nor a name but for its last letters.
ROWS = [
    (1, "zq-1111", 7, "ann", 770_100),
    (2, "zq-2222", 0, "bob", 770_200),
    (3, "zq-3333", 9, "ann", 770_300),
    (4, "zq-4444", 8, "bob", 770_400),
]
# Texts that no user may be shown, in rows and in errors.
SECRETS = ("zq-", "7701", "7702", "7703", "7704")

DENIED = "denied to user"
Expected = Any


@dataclass(frozen=True)
class Hole:
    """A statement on a table `{t}`, or several between `;;`; or, as `frame`, Python over a DataFrame `t`.

    What each user gets: a list of rows in any order, or a text that is in the error. `{mine}` is a table of
    the user's own, and `{files}` the folder of files.
    """

    text: str
    ann: Expected
    bob: Expected
    frame: bool = False
    kinds: tuple[str, ...] = KINDS

    @property
    def is_statement(self) -> bool:
        """Tell whether it is SQL without a script in it."""
        return not self.frame and "BEGIN" not in self.text

    @property
    def runs_python(self) -> bool:
        """Tell whether workers of Spark run its Python."""
        return "lambda" in self.text and not isinstance(self.ann, str)

    def expected(self, user: str) -> Expected:
        """Return what a user gets."""
        return self.ann if user == "ann" else self.bob


def statements(hole: Hole, names: dict[str, str]) -> list[str]:
    """Return what is run, one after the other."""
    text = hole.text
    for key, value in names.items():
        text = text.replace(f"{{{key}}}", value)
    if "$" in text:  # a system table's name takes backquotes
        text = _quoted(text)
    return [text] if hole.frame else [each.strip() for each in text.split(";;")]


def _quoted(text: str) -> str:
    words = text.split(" ")
    return " ".join(
        ".".join([*word.split(".")[:-1], f"`{word.split('.')[-1]}`"]) if "$" in word else word
        for word in words
    )


def outcome(spark: Any, texts: list[str], *, frame_of: str | None = None) -> list[Any] | str:
    """Return the rows of the last statement, or the error of the first that fails."""
    try:
        if frame_of is not None:
            return [shown(row) for row in _collected(_evaluated(spark, texts[0], frame_of))]
        rows: list[Any] = []
        for text in texts:
            rows = spark.sql(text).collect()
        return [shown(row) for row in rows]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _evaluated(spark: Any, text: str, table: str) -> Any:
    from pyspark.sql import functions

    return eval(text, {"t": spark.table(table), "F": functions, "spark": spark})


def _collected(found: Any) -> Any:
    return found.collect() if hasattr(found, "collect") else found


def shown(row: Any) -> list[str]:
    """Return a row as Thrift's client prints it."""
    values = row if isinstance(row, list | tuple) else [row]
    return ["NULL" if value is None else str(value) for value in values]


def wrong(hole: Hole, user: str, found: list[Any] | str) -> str | None:
    """Return what is wrong with an outcome, None if nothing is."""
    told = re.sub(r"(#|plan_id=)\d+", r"\1", str(found).replace(hole.text, ""))  # Spark's own numbers
    for secret in SECRETS:
        if secret in told:
            return f"shows {secret}: {found}"
    expected = hole.expected(user)
    if expected is ...:
        return f"fails: {found}" if isinstance(found, str) else None
    if isinstance(expected, str):
        failed = isinstance(found, str) and expected in found
        return None if failed else f"is not refused by {expected!r}: {found}"
    rows = sorted(shown(row) for row in expected)
    return None if not isinstance(found, str) and sorted(found) == rows else f"gives {found}, not {rows}"


def limits(tables: dict[str, str]) -> list[dict[str, Any]]:
    """Return the policies of the tables of each kind, in Ranger's form."""
    from ranger_world import allow, deny, mask, row_filter

    found = []
    for user in USERS:
        for table in tables.values():
            found += [
                allow(f"{table}.*", users=[user]),
                deny(f"{table}.pay", users=[user]),
                mask(f"{table}.name", "MASK_SHOW_LAST_4", users=[user]),
                row_filter(table, f"dept = '{user}'", users=[user]),
            ]
        mine = own_table(user)
        found += [allow(f"{mine}.*", "all", users=[user]), allow(mine, "all", users=[user])]
    return found


def preparations(tables: dict[str, str]) -> list[str]:
    """Return the statements that make the tables, but for folders of files."""
    values = ", ".join(f"({key}, '{name}', {n}, '{dept}', {pay})" for key, name, n, dept, pay in ROWS)
    found = ["CREATE NAMESPACE lake.holes"]
    for kind, more in (
        ("append", ""),
        ("key", "TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"),
        ("files", "USING parquet"),
    ):
        found.append(f"CREATE TABLE {tables[kind]} ({COLUMNS}) {more}")
        found.append(f"INSERT INTO {tables[kind]} VALUES {values}")
    return found


def make_folder(folder: Path) -> None:
    """Write the table of folders."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string()}
    named = [column.split() for column in COLUMNS.split(", ")]
    schema = pa.schema([(words[0], kinds[words[1]]) for words in named])
    folder.mkdir(parents=True)
    rows = [dict(zip(schema.names, row, strict=True)) for row in ROWS]
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), str(folder / "part-0.parquet"))


def names(table: str, user: str, files: str) -> dict[str, str]:
    """Return what the braces in a hole's text stand for."""
    return {"t": table, "name": table.removeprefix("lake."), "mine": own_table(user), "files": files}


def own_table(user: str) -> str:
    """Return the name of the table that a user may make."""
    return f"lake.holes.mine_{user}"
