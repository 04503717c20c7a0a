"""Advice on the order of rows: the columns of the searches that read most, few enough for the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from lockgate.framework.index.database.searches import SEARCHES
from lockgate.framework.store import ManifestEntry, Table

ORDER = "order"
# Of d columns over N files each divides them into N ** (1 / d) parts: few files are soon no part at all.
_FEW_COLUMNS, _MANY_COLUMNS, _MANY_FILES = 3, 5, 10_000
# Bounds of an order tell these; those of texts tell what a text begins with, too.
_BOUNDED = frozenset({"EQ", "EQ_NULL_SAFE", "IN", "LT", "LE", "GT", "GE", "STARTS_WITH"})
_CHOSEN = "searches by it read most"
_OTHERS = "searches by other columns read more"


@dataclass(frozen=True)
class AdviceRow:
    """What an index or an order by a column would cost and save."""

    kind: Annotated[str, "the kind of index, or `order`"]
    column: Annotated[str, "the column"]
    is_indexed: Annotated[bool, "whether the table's options request it already"]
    distinct_share: Annotated[
        float | None, "keys (values, pieces or words) of a block for each of its rows, NULL for `order`"
    ]
    pruned_share: Annotated[float, "share of blocks that a search for an average key skips"]
    expected_bytes: Annotated[int, "size of the index for the whole table"]
    data_share: Annotated[float, "the same as a share of the table's data"]
    is_advised: Annotated[bool, "whether the index pays"]
    reason: Annotated[str, "the reason for this advice"]
    searches: Annotated[int, "searches of this driver that it answers"]
    searched_bytes: Annotated[int, "bytes of the files that these have read"]
    saved_bytes: Annotated[int, "the part of them that they would not have read, 0 if it is there already"]


def advised_orders(
    table: Table, live: Sequence[ManifestEntry], columns: Sequence[str] | None
) -> list[AdviceRow]:
    """Return rows of `index_advice` about the columns that searches of this process have compared.

    What is advised is to order by all of these columns together.
    """
    schema = table.schema
    names = [
        name
        for name in schema.field_names
        if (columns is None or name in columns)
        and name not in schema.partition_keys
        and table.why_unordered(name) is None
    ]
    ran = {name: SEARCHES.of(table.location, name, _BOUNDED) for name in names}
    searched = sorted((name for name in names if ran[name].searches), key=lambda name: -ran[name].size)
    most = _FEW_COLUMNS if len(live) < _MANY_FILES else _MANY_COLUMNS
    chosen = searched[:most]
    pruned = 1 - len(live) ** (-1 / len(chosen)) if chosen and live else 0.0
    ordered = table.clustering_columns
    rows = []
    for name in searched:
        is_chosen = name in chosen
        share = pruned if is_chosen else 0.0
        saved = 0 if name in ordered else int(ran[name].size * share)
        numbers = (None, round(share, 6), 0, 0.0)
        reason = _CHOSEN if is_chosen else _OTHERS
        counted = (ran[name].searches, ran[name].size, saved)
        rows.append(AdviceRow(ORDER, name, name in ordered, *numbers, is_chosen, reason, *counted))
    return rows
