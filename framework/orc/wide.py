"""The wide form of rows to encrypt: the columns with masks first, true copies of the encrypted behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockgate.framework.keys import KeyMetadata, KeyProvider, LocalKey
from lockgate.framework.orc.masks import mask_array
from lockgate.framework.orc.options import Encryption, Mask
from lockgate.framework.orc.output import bloom_numbers, column_numbers


@dataclass(frozen=True)
class EncryptedColumn:
    """A column to encrypt: `columns` are its numbers in the file; its true copy has them plus `shift`."""

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
    """How rows become wide, and which column of the wide file ends up where."""

    def __init__(self, schema: pa.Schema, encryption: Encryption, keys: KeyProvider) -> None:
        self._encryption = encryption
        self.schema = schema
        copies = {name: self._copy_name(index) for index, name in enumerate(encryption.columns)}
        fields = [schema.field(name).with_name(copy) for name, copy in copies.items()]
        self.wide_schema = pa.schema([*schema, *fields])
        self._numbers = column_numbers(self.wide_schema)
        self._copies = copies
        # Columns of the file itself have lower numbers than this.
        self.width = min((self._numbers[copy] for copy in copies.values()), default=self._end())
        # The format wants them by key, then by column.
        self.columns: list[EncryptedColumn] = sorted(
            self._encrypted_columns(keys), key=lambda column: (column.key.name, column.root)
        )

    def widen(self, table: pa.Table) -> pa.Table:
        """The wide form of `table`."""
        columns = [
            mask_array(column, self._encryption.mask_of(name)) if name in self._copies else column
            for name, column in zip(table.schema.names, table.columns, strict=True)
        ]
        columns.extend(table.column(name) for name in self._copies)
        return pa.Table.from_arrays(columns, schema=self.wide_schema)

    @property
    def names(self) -> dict[str, str]:
        """The name of each column of the wide file in the file itself."""
        return {name: name for name in self.schema.names} | {
            copy: name for name, copy in self._copies.items()
        }

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each top-level column of the wide file, by its name there."""
        return self._numbers

    def bloom_numbers(self, names: Sequence[str]) -> list[int]:
        """The wide columns that get Bloom filters: of an encrypted column the copy only, never the mask."""
        bloom_numbers(names, {name: self._numbers[name] for name in self.schema.names})
        return [self._numbers[self._copies.get(name, name)] for name in names]

    def _copy_name(self, index: int) -> str:
        name = f"encrypted {index}"
        while name in self.schema.names:
            name += "'"
        return name

    def _encrypted_columns(self, keys: KeyProvider) -> list[EncryptedColumn]:
        ends = sorted([*self._numbers.values(), self._end()])
        current = {name: keys.current_key(name) for name in sorted(set(self._encryption.keys.values()))}
        columns: list[EncryptedColumn] = []
        for name, key_name in self._encryption.keys.items():
            root = self._numbers[name]
            end = ends[ends.index(root) + 1]
            key = current[key_name]
            # A local key is never used twice: each column of each file has its own.
            local_key = keys.create_local_key(key)
            shift = self._numbers[self._copies[name]] - root
            columns.append(
                EncryptedColumn(name, key, local_key, self._encryption.mask_of(name), range(root, end), shift)
            )
        return columns

    def _end(self) -> int:
        marked = column_numbers(pa.schema([*self.wide_schema, pa.field("", pa.int8())]))
        return marked[""]
