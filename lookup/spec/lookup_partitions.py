"""The partitions of a dimension to look up in: fixed ones, or the newest, by `scan.partitions`.

Source: Paimon's `PartitionLoader` and its kinds; `max_pt()`, `max_two_pt()` and `a=max_pt(),b=max_pt()` mean
what they mean there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import InputError, nearest
from lockgate.pushdown import AlwaysFalse, Comparison, Op, Predicate, all_of, any_of

if TYPE_CHECKING:
    from lockgate.framework.store import TableSchema

_NEWEST = {"max_pt()": 1, "max_two_pt()": 2}
# How a folder spells a null, in Hive and in Paimon.
_NULL = "__DEFAULT_PARTITION__"

Partition = tuple[Any, ...]


@dataclass(frozen=True)
class PartitionChoice:
    """Partitions that `scan.partitions` chooses: `fixed` ones by the texts of their values, or the `newest`.

    The newest are those with the largest values of the partition columns, compared in their order; with
    `levels` only the columns named in it are compared, and all partitions below are chosen.
    """

    fixed: tuple[tuple[tuple[str, str], ...], ...] = ()
    newest: int = 0
    levels: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.fixed or self.newest)

    def check(self, identifier: str, schema: TableSchema) -> None:
        """Raise InputError if a table of `schema` cannot be read so."""
        keys = schema.partition_keys
        if not keys:
            raise InputError(f"scan.partitions is for partitioned tables, which {identifier} is not")
        for name in (*self.levels, *(name for spec in self.fixed for name, _ in spec)):
            if name not in keys:
                raise InputError(
                    f"scan.partitions names {name!r}{nearest(name, keys)}; {identifier} is partitioned by "
                    f"{', '.join(keys)}"
                )
        if set(self.levels) != set(keys[: len(self.levels)]):
            raise InputError(
                f"scan.partitions gives max_pt() to {', '.join(self.levels)}, but not to an earlier column: "
                f"{identifier} is partitioned by {', '.join(keys)}, in this order"
            )
        for spec in self.fixed:
            _spec_predicate(schema, spec)

    def predicate(self, schema: TableSchema, partitions: Iterable[Partition]) -> Predicate:
        """Return the condition that chooses among `partitions`, all that there are; AlwaysFalse if none
        is.
        """
        if self.fixed:
            return any_of(*(_spec_predicate(schema, spec) for spec in self.fixed))
        keys = schema.partition_keys
        width = len(self.levels) or len(keys)
        there = {partition[:width] for partition in partitions}
        chosen = sorted(there, key=_order, reverse=True)[: self.newest]
        if not chosen:
            return AlwaysFalse()
        return any_of(*(_equal(schema, list(zip(keys, values, strict=False))) for values in chosen))


def parse_partitions(text: str) -> PartitionChoice:
    """Parse `max_pt()`, `max_two_pt()`, `a=max_pt(),b=max_pt()` or `a=1,b=2;a=1,b=3`.

    Raises ValueError for another spelling.
    """
    written = text.strip()
    if not written:
        return PartitionChoice()
    if written.lower() in _NEWEST:
        return PartitionChoice(newest=_NEWEST[written.lower()])
    specs = tuple(_parse_spec(part) for part in written.split(";") if part.strip())
    values = [value.lower() for spec in specs for _, value in spec]
    if "max_pt()" not in values:
        return PartitionChoice(fixed=specs)
    if set(values) != {"max_pt()"} or len(specs) != 1:
        raise ValueError("expected max_pt() for each column named, as in 'year=max_pt(),month=max_pt()'")
    return PartitionChoice(newest=1, levels=tuple(name for name, _ in specs[0]))


def _parse_spec(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not name.strip() or not equals for name, equals, _ in pairs):
        raise ValueError(
            "expected 'max_pt()', 'max_two_pt()' or partitions such as 'dt=2024-01-01;dt=2024-01-02'"
        )
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _order(values: Sequence[Any]) -> list[tuple[bool, Any]]:
    # Paimon's order of partitions: a null is smaller than any value.
    return [(value is not None, value) for value in values]


def _spec_predicate(schema: TableSchema, spec: Sequence[tuple[str, str]]) -> Predicate:
    pairs = []
    for name, text in spec:
        data_type = schema.arrow_schema.field(name).type
        try:
            value = None if text == _NULL else pa.scalar(text, pa.string()).cast(data_type)
        except pa.ArrowInvalid:
            raise InputError(
                f"scan.partitions: {text!r} is not a value of column {name!r}, a {data_type}"
            ) from None
        pairs.append((name, value))
    return _equal(schema, pairs)


def _equal(schema: TableSchema, pairs: Sequence[tuple[str, Any]]) -> Predicate:
    conditions: list[Predicate] = []
    for name, value in pairs:
        if value is None:
            conditions.append(Comparison(Op.IS_NULL, (name,)))
        else:
            scalar = value if isinstance(value, pa.Scalar) else _scalar(schema, name, value)
            conditions.append(Comparison(Op.EQ, (name,), (scalar,)))
    return all_of(*conditions)


def _scalar(schema: TableSchema, name: str, value: Any) -> pa.Scalar:
    return pa.scalar(value, schema.arrow_schema.field(name).type)
