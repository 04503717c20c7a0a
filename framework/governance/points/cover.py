"""Cover: the points that grants cover, alone or together, and the parts that they do not.

One rule: a grant covers a point if its table and column are absent or the same, and the point's rows are
among the grant's. So a database covers its tables, a table its rows and columns, rows of a table the same
rows of each column, and a column its rows. Several grants may cover a point together, each a part of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import prod

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.governance.points.point import Constant, Point

MOST_CELLS = 10_000
Cell = tuple[Constant, ...]


@checked_arguments
def covers(grant: Point, point: Point) -> bool:
    """Return whether one grant covers a point."""
    if not _is_about(grant, point):
        return False
    return all(column in point.rows and point.rows[column] <= values for column, values in grant.rows.items())


def _is_about(grant: Point, point: Point) -> bool:
    if grant.database != point.database:
        return False
    return grant.table in (None, point.table) and grant.column in (None, point.column)


@checked_arguments
def missing(point: Point, grants: Iterable[Point]) -> Point | None:
    """Return the part of a point that no grant covers, None if all of it is covered.

    It checks rows cell by cell, with a cell for each combination of constants. The returned part may include
    covered cells, if the uncovered ones form no box of their own. Raises InputError for more than 10,000
    cells.
    """
    about = [grant for grant in grants if _is_about(grant, point)]
    if any(covers(grant, point) for grant in about):
        return None
    columns = sorted(point.rows)
    useful = [grant for grant in about if set(grant.rows) <= set(columns)]
    if not useful:
        return point
    _check_size(point)
    left = [
        cell for cell in _cells(point, columns) if not any(_has(grant, columns, cell) for grant in useful)
    ]
    if not left:
        return None
    rows = {
        column: frozenset(values) for column, values in zip(columns, zip(*left, strict=True), strict=True)
    }
    return Point(point.database, point.table, point.column, rows)


def all_missing(points: Iterable[Point], grants: Iterable[Point]) -> list[Point]:
    """Return the parts of points that no grant covers, in the order of the points."""
    given = list(grants)
    found = (missing(point, given) for point in points)
    return [each for each in found if each is not None]


def _check_size(point: Point) -> None:
    count = prod(len(values) for values in point.rows.values())
    if count > MOST_CELLS:
        raise InputError(
            f"{count} combinations of constants of table {point.database}.{point.table} are too many to look "
            f"up (at most {MOST_CELLS}): ask for the whole table or column"
        )


def _cells(point: Point, columns: Sequence[str]) -> Iterable[Cell]:
    return itertools.product(*(sorted(point.rows[column], key=repr) for column in columns))


def _has(grant: Point, columns: Sequence[str], cell: Cell) -> bool:
    values = dict(zip(columns, cell, strict=True))
    return all(values[column] in allowed for column, allowed in grant.rows.items())
