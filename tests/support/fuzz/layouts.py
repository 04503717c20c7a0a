"""Random layouts of tables."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fuzz.kinds import FLAT, KINDS, Column, Kind
from fuzz.world import Layout

PARTITION_KINDS = ("STRING", "INT", "DATE", "BOOLEAN", "BIGINT", "SMALLINT")
SEQUENCE_KINDS = ("INT", "BIGINT", "DATE", "TIMESTAMP")
OPTIONS = {
    "source.split.driver-max-size": ("0", "4 mb", "64 mb"),
    "source.split.target-size": ("1 mb",),
    "source.split.open-file-cost": ("1 kb",),
    "metadata.stats-mode": ("none", "counts", "full", "truncate(4)"),
    "file.compression": ("none", "zlib", "lz4"),
    "manifest.merge-min-count": ("2",),
}


def random_layout(pick: random.Random, kinds: Sequence[str]) -> Layout:
    """Columns of these types; keys, partitions, encryption and options in all allowed combinations."""
    columns = [Column("id", KINDS["BIGINT"])]
    columns += [Column(f"c{index}", kind) for index, kind in enumerate(_some(pick, kinds))]
    partitions: tuple[str, ...] = ()
    if pick.random() < 0.4:
        columns.append(Column("p", KINDS[pick.choice(PARTITION_KINDS)]))
        partitions = ("p",)
    options: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    if pick.random() < 0.55:
        keys = _keys(pick, columns, partitions)
        options["bucket"] = pick.choice(["1", "2", "2", "3", "4"])
        columns = [_required(column) if column.name in keys else column for column in columns]
        if pick.random() < 0.35:
            columns.append(Column("seq", KINDS[pick.choice(SEQUENCE_KINDS)]))
            options["sequence.field"] = "seq"
    elif pick.random() < 0.25:
        options |= {"bucket": pick.choice("24"), "bucket-key": "id"}
    _encrypt(pick, columns, {*keys, *partitions, options.get("sequence.field", ""), "id"}, options)
    for name, values in OPTIONS.items():
        if pick.random() < 0.15:
            options[name] = pick.choice(values)
    if not keys and pick.random() < 0.2:
        columns = [_required(c) if c.name == columns[1].name else c for c in columns]
    return Layout(tuple(columns), keys, partitions, options)


def _some(pick: random.Random, kinds: Sequence[str]) -> list[Kind]:
    flat = [name for name in kinds if KINDS[name].family == FLAT]
    nested = [name for name in kinds if KINDS[name].family != FLAT]
    chosen = pick.choices(flat, k=pick.randrange(3, 7))
    if nested and pick.random() < 0.4:
        chosen.append(pick.choice(nested))
    return [KINDS[name] for name in chosen]


def _keys(pick: random.Random, columns: Sequence[Column], partitions: tuple[str, ...]) -> tuple[str, ...]:
    more = [c.name for c in columns[1:] if c.kind.key and c.name not in partitions]
    second = [pick.choice(more)] if more and pick.random() < 0.25 else []
    return ("id", *second, *partitions)


def _required(column: Column) -> Column:
    return Column(column.name, column.kind, nullable=False)


def _encrypt(
    pick: random.Random, columns: Sequence[Column], clear: set[str], options: dict[str, str]
) -> None:
    may = [column.name for column in columns if column.name not in clear]
    if may and pick.random() < 0.3:
        options["orc.encrypt"] = "pii:" + ",".join(pick.sample(may, pick.randrange(1, len(may) + 1)))
