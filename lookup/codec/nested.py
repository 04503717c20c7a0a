"""Lists, maps and structs as byte rows: their members are encoded as rows of their own, level by level.

* A struct is one row of its members.
* A list is a packed list (`lists`) of one-column rows, a map one of two-column rows.

All values of a column are encoded in a few calls a level, whatever their number. What lies under a null is
nothing at all, so that equal values have equal bytes; the null itself is the bit that the enclosing row has
for the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows, offsets_of, ragged
from lockgate.lookup.codec.lists import pack, unpack

if TYPE_CHECKING:
    from lockgate.lookup.codec.row_codec import RowCodec


def is_nested(data_type: pa.DataType) -> bool:
    """Say whether values of this type have members that are encoded as rows."""
    return bool(
        pa.types.is_struct(data_type)
        or pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_map(data_type)
    )


class NestedCodec:
    """Encodes the values of one nested type; raises UnsupportedTypeError for members of another kind."""

    def __init__(self, data_type: pa.DataType, name: str) -> None:
        from lockgate.lookup.codec.row_codec import RowCodec

        self._kind = data_type
        self._struct = pa.types.is_struct(data_type)
        if self._struct:
            members = [data_type.field(index) for index in range(data_type.num_fields)]
        elif pa.types.is_map(data_type):
            members = [data_type.key_field, data_type.item_field]
        else:
            members = [data_type.value_field]
        # Members are named by their position: a struct may have two of one name.
        fields = [pa.field(f"{name}.{n}", member.type) for n, member in enumerate(members)]
        self._rows: RowCodec = RowCodec(pa.schema(fields))

    # --- encode ----------------------------------------------------------------------------------

    def encode(self, column: pa.Array) -> pa.Array:
        """Encode the values as large binaries, null where they are null."""
        there = _valid(column)
        rows = self._encode_structs(column, there) if self._struct else self._encode_lists(column, there)
        mask = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
        buffers = [mask, pa.py_buffer(rows.offsets << 3), pa.py_buffer(rows.words)]
        return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)

    def _encode_structs(self, column: pa.Array, there: Bools) -> Rows:
        members = [column.field(index) for index in range(column.type.num_fields)]
        rows = self._encode_members(members, len(column), None if there.all() else np.flatnonzero(there))
        return rows if there.all() else _spread(rows, there)

    def _encode_lists(self, column: pa.Array, there: Bools) -> Rows:
        offsets = np.asarray(column.offsets).astype(np.int64)
        counts = np.where(there, np.diff(offsets), 0)
        items: Int64s = ragged(offsets[:-1], counts)
        members = [column.keys, column.items] if pa.types.is_map(column.type) else [column.values]
        lists = pack(self._encode_members(members, len(members[0]), items), counts)
        if there.all():
            return lists
        kept = np.flatnonzero(there)
        return _spread(lists.take(kept), there)

    def _encode_members(self, members: list[pa.Array], count: int, wanted: Int64s | None) -> Rows:
        if not members:
            total = count if wanted is None else len(wanted)
            width = self._rows.width
            return Rows(np.zeros(total * width, np.uint64), np.arange(total + 1, dtype=np.int64) * width)
        if wanted is not None and not _is_everything(wanted, count):
            members = [member.take(pa.array(wanted)) for member in members]
        return self._rows.encode(pa.RecordBatch.from_arrays(members, names=self._rows.schema.names))

    # --- decode ----------------------------------------------------------------------------------

    def decode(self, column: pa.Array) -> pa.Array:
        """Decode large binaries; the reverse of `encode`."""
        there = _valid(column)
        present = column if there.all() else column.filter(pa.array(there))
        offsets = np.frombuffer(present.buffers()[1], np.int64, len(present) + 1, present.offset * 8) >> 3
        words = np.frombuffer(present.buffers()[2] or b"", np.uint64, int(offsets[-1]))
        rows = Rows(words, offsets)
        if self._struct:
            members = self._rows.decode(rows).columns if self._rows.schema.names else []
            return self._structs(members, there)
        items, counts = unpack(rows)
        lengths = np.zeros(len(there), np.int64)
        lengths[there] = counts
        return self._lists(self._rows.decode(items).columns, offsets_of(lengths), there)

    def _structs(self, members: list[pa.Array], there: Bools) -> pa.Array:
        if there.all():
            arrays, mask = members, None
        else:
            # The members of a null are null themselves.
            indices = pa.array(np.cumsum(there) - 1, mask=~there)
            arrays, mask = [member.take(indices) for member in members], pa.array(~there)
        if arrays:
            fields = [self._kind.field(index) for index in range(self._kind.num_fields)]
            return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
        return pa.array([{} if here else None for here in there.tolist()], self._kind)

    def _lists(self, members: list[pa.Array], offsets: Int64s, there: Bools) -> pa.Array:
        mask = None if there.all() else pa.array(~there)
        if pa.types.is_map(self._kind):
            ends = pa.array(offsets.astype(np.int32))
            return pa.MapArray.from_arrays(ends, *members, type=self._kind, mask=mask)
        large = pa.types.is_large_list(self._kind)
        make: Any = pa.LargeListArray if large else pa.ListArray
        ends = pa.array(offsets if large else offsets.astype(np.int32))
        return make.from_arrays(ends, members[0], type=self._kind, mask=mask)


def _valid(column: pa.Array) -> Bools:
    if column.null_count == 0:
        return np.ones(len(column), bool)
    valid: Bools = np.asarray(column.is_valid())
    return valid


def _is_everything(wanted: Int64s, count: int) -> bool:
    return len(wanted) == count and bool((wanted == np.arange(count)).all())


def _spread(rows: Rows, there: Bools) -> Rows:
    # A null is a row of no length between the others.
    lengths = np.zeros(len(there), np.int64)
    lengths[there] = rows.lengths
    return Rows(rows.words, offsets_of(lengths))
