"""Texts of the statistics of files, as those of the table's present columns: `{a=1, b=null}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lockgate.framework.store.codec.simple_stats import bounds_of_all
from lockgate.framework.store.confidential.confidential_columns import confidential_in_history
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.system.texts import NULL, internal_spelling, map_text
from lockgate.framework.types import DataField, to_arrow

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_Layout: TypeAlias = tuple[int, tuple[str, ...] | None]


@dataclass(frozen=True)
class _Column:
    """A present column in files of one layout: its position in their statistics, None if they lack it.

    `absent`: files of the layout do not have the column at all, so that it is null in every row. `spell` is
    None where bounds are not to be shown.
    """

    name: str
    position: int | None = None
    absent: bool = False
    spell: Callable[[Any], str] | None = None


class StatisticsTexts:
    """Makes texts of what files say of the columns."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._secrets = confidential_in_history(table)
        self._layouts: dict[_Layout, list[_Column]] = {}

    def texts(self, files: Sequence[DataFileMeta], what: str) -> list[str]:
        """Return of each file the counts of nulls (`nulls`), or the smallest (`min`) or largest (`max`)
        values.
        """
        members: dict[_Layout, list[int]] = {}
        for number, file in enumerate(files):
            members.setdefault((file.schema_id, file.value_stats_cols), []).append(number)
        found = [""] * len(files)
        for layout, numbers in members.items():
            own = [files[number] for number in numbers]
            for number, text in zip(numbers, _lines(self._columns(layout), own, what), strict=True):
                found[number] = text
        return found

    def _columns(self, layout: _Layout) -> list[_Column]:
        found = self._layouts.get(layout)
        if found is None:
            fields = sorted(self._table.schema.fields, key=lambda field: field.name)
            found = self._layouts[layout] = [self._column(field, layout) for field in fields]
        return found

    def _column(self, field: DataField, layout: _Layout) -> _Column:
        written = self._table.schema_of(layout[0])
        then = next((each for each in written.fields if each.id == field.id), None)
        if then is None:
            return _Column(field.name, absent=True)
        names = written.field_names if layout[1] is None else layout[1]
        if then.name not in names:
            return _Column(field.name)
        spell = None if self._secrets.has_id(field.id) else _spelling(then, field)
        return _Column(field.name, names.index(then.name), spell=spell)


def _lines(columns: Sequence[_Column], files: Sequence[DataFileMeta], what: str) -> Iterator[str]:
    """Yield the text of each file of a layout."""
    if what == "nulls":
        found = [(column.name, _counts(column, files)) for column in columns]
    else:
        bounds = _decoded(columns, files, what)
        found = [(column.name, _bounds(column, files, bounds)) for column in columns]
    same = {name: texts for name, texts in found if isinstance(texts, str)}
    if len(same) == len(found):
        return iter([map_text(same)] * len(files))
    parts = (
        [f"{name}={texts}"] * len(files) if isinstance(texts, str) else [f"{name}={text}" for text in texts]
        for name, texts in found
    )
    return ("{" + ", ".join(row) + "}" for row in zip(*parts, strict=True))


def _decoded(
    columns: Sequence[_Column], files: Sequence[DataFileMeta], what: str
) -> Sequence[tuple[Any, ...]]:
    """Return all bounds of each file; none are decoded where none are shown."""
    if all(column.position is None or column.spell is None for column in columns):
        return [()] * len(files)
    return list(bounds_of_all((file.value_stats for file in files), "min" if what == "min" else "max"))


def _counts(column: _Column, files: Sequence[DataFileMeta]) -> list[str] | str:
    """Return the counts of a column's nulls; one text if it is that of every file."""
    if column.absent:
        return [str(file.row_count) for file in files]
    position = column.position
    if position is None:
        return NULL
    counts = [file.value_stats.null_counts for file in files]
    own = (each[position] if position < len(each) else None for each in counts)
    return [NULL if count is None else str(count) for count in own]


def _bounds(
    column: _Column, files: Sequence[DataFileMeta], bounds: Sequence[tuple[Any, ...]]
) -> list[str] | str:
    """Return the bounds of a column; one text if it is that of every file."""
    position, spell = column.position, column.spell
    if position is None or spell is None:
        return NULL
    return [
        spell(values[position])
        if position < len(values) and position < len(file.value_stats.null_counts)
        else NULL
        for file, values in zip(files, bounds, strict=True)
    ]


def _spelling(then: DataField, now: DataField) -> Callable[[Any], str]:
    """Return how bounds of the column's former type are spelled as those of its present one."""
    spell = internal_spelling(now.type)
    if then.type.with_nullable(True) == now.type.with_nullable(True):
        return spell
    former, present = to_arrow(then.type), to_arrow(now.type)

    def converted(value: Any) -> str:
        if value is None:
            return NULL
        try:
            return spell(pa.scalar(value, former).cast(present).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return NULL

    return converted
