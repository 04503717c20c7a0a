"""The wide form of rows to encrypt: masked columns first, then copies with the true values.

If only a part of a column is encrypted, only that part's streams of the copy are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockgate.framework.keys import KeyMetadata, KeyProvider, LocalKey
from lockgate.framework.orc.encryption.encryption_options import Encryption, Mask
from lockgate.framework.orc.format.column_paths import ColumnTree, OrcColumn, bloom_numbers
from lockgate.framework.orc.masks.masks import ColumnMasks


@dataclass(frozen=True)
class MaskedColumn:
    """A column to encrypt; `columns` are its numbers in the file, and plus `shift` those of its copy."""

    name: str
    key: KeyMetadata
    local_key: LocalKey
    mask: Mask
    columns: range
    shift: int

    @property
    def root(self) -> int:
        """The number of the column itself."""
        return self.columns.start


class WideTable:
    """Converts rows to the wide form, and has the number of each wide column."""

    def __init__(self, schema: pa.Schema, encryption: Encryption, keys: KeyProvider) -> None:
        self.schema = schema
        self._tree = ColumnTree(schema)
        roots = [self._tree.find("orc.encrypt", name) for name in encryption.columns]
        tops = list(dict.fromkeys(self._tree.top_of(root).name for root in roots))
        self._copies = {name: self._copy_name(index) for index, name in enumerate(tops)}
        fields = [schema.field(name).with_name(copy) for name, copy in self._copies.items()]
        self.wide_schema = pa.schema([*schema, *fields])
        self._wide = {column.name: column for column in ColumnTree(self.wide_schema).top}
        # Columns of the written file have lower numbers than this.
        self.width = self._tree.end
        self._masks = ColumnMasks(encryption, self._tree)
        # The format requires the order by key, then by column.
        self.columns: list[MaskedColumn] = sorted(
            self._encrypted_columns(roots, encryption, keys),
            key=lambda column: (column.key.name, column.root),
        )

    def widen(self, table: pa.Table) -> pa.Table:
        """Return the wide form of `table`."""
        columns = [
            self._masks.mask_column(top, column) if top.name in self._copies else column
            for top, column in zip(self._tree.top, table.columns, strict=True)
        ]
        columns.extend(table.column(name) for name in self._copies)
        return pa.Table.from_arrays(columns, schema=self.wide_schema)

    @property
    def masks(self) -> dict[int, Mask]:
        """The mask of each encrypted column, and of each nested part with its own mask, by column number."""
        return self._masks.by_number

    @property
    def names(self) -> dict[str, str]:
        """The name in the written file of each wide column."""
        return {name: name for name in self.schema.names} | {
            copy: name for name, copy in self._copies.items()
        }

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each top-level wide column, by its wide name."""
        return {name: column.number for name, column in self._wide.items()}

    def bloom_numbers(self, names: Sequence[str]) -> list[int]:
        """Return the wide columns that get Bloom filters; for an encrypted column its copy, never its
        mask.
        """
        shifts = {number: column.shift for column in self.columns for number in column.columns}
        numbers = bloom_numbers(names, self._tree)
        return [number + shifts.get(number, 0) for number in numbers]

    def _copy_name(self, index: int) -> str:
        name = f"encrypted {index}"
        while name in self.schema.names:
            name += "'"
        return name

    def _encrypted_columns(
        self, roots: Sequence[OrcColumn], encryption: Encryption, keys: KeyProvider
    ) -> list[MaskedColumn]:
        current = {name: keys.current_key(name) for name in sorted(set(encryption.keys.values()))}
        columns: list[MaskedColumn] = []
        for root in roots:
            key = current[encryption.keys[root.name]]
            # A local key is never used twice: each column of each file has its own.
            local_key = keys.create_local_key(key)
            top = self._tree.top_of(root)
            shift = self._wide[self._copies[top.name]].number - top.number
            mask = encryption.mask_of(root.name)
            columns.append(MaskedColumn(root.name, key, local_key, mask, root.numbers, shift))
        return columns
