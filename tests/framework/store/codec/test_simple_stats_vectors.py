"""What may match by statistics: the vectors of `tests/fixtures/pruning`, which the connector runs too.

A vector has files with their rows, and predicates. `may` says of each file whether a row may match, by its
least and greatest value and its nulls. `bounds` and `reader` say what `store.column_bounds` and the reader of
ORC files keep: the first leaves out a little less, the other also looks into dictionaries. The connector may
leave out less, too: its test asks only that no file is left out that may match.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.framework import orc
from lockgate.framework import types as t
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.manifests.column_bounds import (
    BoundsOf,
    ColumnBounds,
    may_match_files,
    undecided_files,
)
from lockgate.framework.store.scan.scan import files_of
from lockgate.framework.types import is_bounded
from lockgate.pushdown import (
    ColumnStatistics,
    Predicate,
    col,
    from_json,
    may_match,
    normalize,
    to_arrow_expression,
)

VECTORS = sorted((Path(__file__).parents[3] / "fixtures" / "pruning").glob("*.json"))


def load(path: Path) -> tuple[list[pa.Table], list[tuple[Predicate, dict[str, Any]]]]:
    vector = json.loads(path.read_text())
    kind = t.parse_type(vector["type"])
    files = [
        pa.table({"v": pa.array([t.value_from_json(kind, value) for value in rows], t.to_arrow(kind))})
        for rows in vector["files"]
    ]
    asked = []
    for case in vector["asked"]:
        predicate = from_json(case["predicate"])
        assert predicate is not None
        asked.append((predicate, case))
    return files, asked


def statistics_of(rows: pa.Table) -> ColumnStatistics:
    values = rows["v"].combine_chunks()
    nulls = values.null_count
    if pa.types.is_floating(values.type):
        numbers = values.filter(pc.invert(pc.fill_null(pc.is_nan(values), True)))
        nans = len(values) - nulls - len(numbers)
    else:
        numbers, nans = values.drop_null(), 0
    if not len(numbers):
        return ColumnStatistics(None, None, nulls, nans)
    order = sorted(numbers, key=lambda scalar: scalar.as_py())
    return ColumnStatistics(order[0], order[-1], nulls, nans or None)


def by_statistics(files: list[pa.Table], predicate: Predicate) -> list[bool]:
    return [may_match(predicate, {("v",): statistics_of(rows)}, len(rows)) for rows in files]


def by_bounds(
    catalog: Catalog,
    files: list[pa.Table],
    kind: str,
    answer: Callable[[Predicate, BoundsOf, int], npt.NDArray[np.bool_]] = may_match_files,
) -> Callable[[Predicate], list[bool]]:
    column = t.DataField(0, "v", t.parse_type(kind))
    table = catalog.create_table("db.t", Schema((column,), options={"metadata.stats-mode": "full"}))
    for rows in files:
        table.append(rows)
    field, entries = table.schema.field("v"), files_of(table, table.latest_snapshot())
    bounds = entries.bounds(field, lambda _: table.schema) if is_bounded(field.type) else None
    return lambda asked: answer(normalize(asked), lambda _: bounds, len(files)).tolist()


def by_reader(folder: Path, files: list[pa.Table]) -> Callable[[Predicate], list[bool]]:
    opened = []
    for number, rows in enumerate(files):
        orc.write_table(rows, str(folder / f"{number}.orc"))
        opened.append(orc.EncryptedOrcFile(str(folder / f"{number}.orc"), timestamp_unit="us"))

    def ask(predicate: Predicate) -> list[bool]:
        kept = []
        for file in opened:
            file.read(predicate=predicate)
            kept.append(file.last_read.row_groups_read > 0)
        return kept

    return ask


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_statistics_leave_out_no_file_with_matches(path: Path) -> None:
    files, asked = load(path)
    for predicate, case in asked:
        assert by_statistics(files, predicate) == case["may"], predicate
        found = [rows.filter(to_arrow_expression(predicate, rows.schema)).num_rows for rows in files]
        assert all(may or not rows for may, rows in zip(case["may"], found, strict=True)), predicate


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_bounds_and_reader(path: Path, catalog: Catalog, tmp_path: Path) -> None:
    files, asked = load(path)
    bounds = by_bounds(catalog, files, json.loads(path.read_text())["type"])
    reader = by_reader(tmp_path, files)
    for predicate, case in asked:
        assert bounds(predicate) == case["bounds"], predicate
        assert reader(predicate) == case["reader"], predicate


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_bounds_say_where_a_file_is_to_be_asked_by_itself(path: Path, catalog: Catalog) -> None:
    """A scan asks no other files one by one, so that bounds must leave out all that statistics do."""
    files, asked = load(path)
    undecided = by_bounds(catalog, files, json.loads(path.read_text())["type"], undecided_files)
    for predicate, case in asked:
        for may, by_bound, open_question in zip(
            case["may"], case["bounds"], undecided(predicate), strict=True
        ):
            assert open_question or may == by_bound, predicate


def test_half_known_bounds_and_far_numbers_leave_a_question_open() -> None:
    flags = np.array([False, True])
    bounds = ColumnBounds(
        low=np.array([1, 1]),
        high=np.array([5, 0]),
        valid=~flags,
        all_null=np.zeros(2, np.bool_),
        no_null=np.ones(2, np.bool_),
        nulls=np.zeros(2, np.int64),
        partial=flags,
        scale=Fraction(1),
    )

    def opened(asked: Predicate) -> list[bool]:
        found = undecided_files(normalize(asked), lambda name: bounds if name == "v" else None, 2)
        return [bool(each) for each in found]

    v = col("v")
    assert opened(v == 3) == opened(v.isin([3, 9])) == opened(v > 3) == [False, True]
    assert opened(v == Decimal(2**70)) == opened(v.isin([3, Decimal(2**70)])) == [True, True]
    assert opened(v != 3) == opened(col("w") == 3) == opened((v == 3) | (col("w") == 3)) == [True, True]
