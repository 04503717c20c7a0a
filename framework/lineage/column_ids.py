"""Ids of the columns of a statement, from the schemas of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError
from lockgate.framework.lineage.model.lineage_records import TARGET, ColumnId, Edge, RowEdge
from lockgate.framework.lineage.model.names import column_path, column_text

if TYPE_CHECKING:
    from lockgate.framework.lineage.capture import NamedDataset

_NEW_NAMES = ("RENAME_COLUMN", "ADD_COLUMNS")


def ids_of(
    kind: str,
    target: NamedDataset | None,
    inputs: Sequence[NamedDataset],
    edges: Iterable[Edge],
    rows: Iterable[RowEdge],
    columns: Iterable[str],
) -> tuple[ColumnId, ...]:
    """Return the ids of columns of Lockgate's tables, without columns that a table no longer has."""
    names_by_dataset: dict[int, set[str]] = {TARGET: set(columns)}
    for column, number, source, _ in edges:
        names_by_dataset[TARGET].add(column)
        names_by_dataset.setdefault(number, set()).add(source)
    for number, source, _ in rows:
        names_by_dataset.setdefault(number, set()).add(source)
    column_ids: list[ColumnId] = []
    for number, names in sorted(names_by_dataset.items()):
        dataset = target if number == TARGET else inputs[number]
        if dataset is not None and names:
            # Spark analyses a statement with new columns with the schema before the change.
            ids = _ids(dataset, is_newest=number == TARGET and kind in _NEW_NAMES)
            column_ids += _ids_among(ids, number, names)
    return tuple(column_ids)


def _ids_among(ids: Mapping[str, int], number: int, names: Iterable[str]) -> Iterator[ColumnId]:
    for name in sorted(names):
        top, *members = column_path(name)
        if top.lower() in ids:
            rest = f".{column_text(members)}" if members else ""
            yield number, name, f"{ids[top.lower()]}{rest}"


def _ids(dataset: NamedDataset, *, is_newest: bool) -> dict[str, int]:
    if dataset.catalog is None or dataset.type != "table" or len(dataset.parts) != 2:
        return {}
    try:
        table = dataset.catalog.load_table(".".join(dataset.parts))
        if dataset.id not in ("", str(table.table_id)):
            return {}
        schemas = [table.schema]
        if dataset.schema is not None and not is_newest:
            schemas.append(table.schema_of(dataset.schema))
    except LockgateError:  # a dropped or renamed table: its columns are identified by name
        return {}
    return {field.name.lower(): field.id for schema in schemas for field in schema.fields}
