"""A lookup join by call and the same one in SQL, for tests that take `lookup_join` as an argument."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_numbers = itertools.count(1)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def in_sql(
    stream: DataFrame,
    table: str,
    on: str | Sequence[str] | Mapping[str, str],
    *,
    how: str = "left",
    select: Sequence[str] | Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Join as `lookup_join` does, by a statement: the stream's columns, then those of the dimension."""
    spark = stream.sparkSession
    view = f"joined_in_sql_{next(_numbers)}"
    stream.createOrReplaceTempView(view)
    keys = {on: on} if isinstance(on, str) else dict(on) if isinstance(on, Mapping) else {k: k for k in on}
    joined_by = {key.lower() for key in keys.values()}
    if select is None:
        select = [name for name in spark.table(table).columns if name.lower() not in joined_by]
    chosen = select if isinstance(select, Mapping) else {name: name for name in select}
    hints = ", ".join(f"'{key}'='{value}'" for key, value in (options or {}).items())
    columns = ", ".join(
        ["o.*", *(f"d.{_quoted(found)} AS {_quoted(name)}" for name, found in chosen.items())]
    )
    met = " AND ".join(f"o.{_quoted(mine)} = d.{_quoted(its)}" for mine, its in keys.items())
    return spark.sql(
        f"SELECT {columns} FROM {view} AS o {how.upper()} JOIN {table} /*+ OPTIONS({hints}) */ "
        f"FOR SYSTEM_TIME AS OF PROCTIME() AS d ON {met}"
    )


BOTH_WAYS = pytest.mark.parametrize(
    "lookup_join",
    [
        pytest.param(lookup_join, id="by call"),
        pytest.param(in_sql, id="in SQL", marks=pytest.mark.long),
    ],
)
