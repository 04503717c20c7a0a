"""The specification of one lookup: its table, join columns, answered columns and condition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    MaskedDataWarning,
    UnsupportedError,
    nearest,
    warn_user,
)
from lockgate.framework.store import TableSchema, visibility
from lockgate.framework.types import type_to_json
from lockgate.framework.version import CACHE_FORMAT, ROW_CODEC
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.key_codec import LOOKUP_SPACE, PRIMARY_SPACE, KeyCodec
from lockgate.lookup.codec.row_codec import RowCodec
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_rights import CacheRights, RightsJson
from lockgate.pushdown import Predicate, columns_of, describe, from_json, to_json, with_columns

if TYPE_CHECKING:
    from lockgate.framework.access import Visibility
    from lockgate.framework.store import Table
    from lockgate.lookup.codec.cache_cipher import CacheCipher


class CacheStructure(StrEnum):
    """The structure of a cache, which follows from the dimension's primary key and the join columns."""

    PRIMARY_KEY = "primary-key"
    SECONDARY_INDEX = "secondary-index"
    NO_PRIMARY_KEY = "no-primary-key"


class SpecJson(TypedDict):
    """A `LookupSpec` in JSON; `where` is a predicate of `pushdown.json_codec`."""

    identifier: str
    keys: list[str]
    columns: list[str]
    where: Any
    options: dict[str, str]
    group: tuple[int, int] | None
    rights: RightsJson | None


@checked_arguments
@dataclass(frozen=True)
class LookupSpec:
    """A lookup in the form that processes exchange: names, without types and keys.

    With a `group` (number, count), it has only the rows in buckets whose number modulo `count` is `number`.
    With `rights`, it omits what these hide from the user. Lockgate decides rights when the lookup is made,
    and passes them only to the cache's owner.
    """

    identifier: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    where: Predicate | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    group: tuple[int, int] | None = None
    rights: CacheRights | None = None

    def to_json(self) -> SpecJson:
        """Return the form that goes through pipes."""
        return {
            "identifier": self.identifier,
            "keys": list(self.keys),
            "columns": list(self.columns),
            "where": None if self.where is None else to_json(self.where),
            "options": dict(self.options),
            "group": self.group,
            "rights": None if self.rights is None else self.rights.to_json(),
        }

    def asked(self) -> SpecJson:
        """Return the form for read options, without rights, because users see read options."""
        return replace(self, rights=None).to_json()

    @classmethod
    def from_json(cls, content: SpecJson) -> LookupSpec:
        """Return the reverse of `to_json`; raises InputError for a condition that cannot be evaluated."""
        where = None
        if content["where"] is not None:
            where = from_json(content["where"])
            if where is None:
                raise InputError(f"the condition of the lookup cannot be evaluated: {content['where']}")
        return cls(
            content["identifier"],
            tuple(content["keys"]),
            tuple(content["columns"]),
            where,
            dict(content["options"]),
            None if content["group"] is None else (content["group"][0], content["group"][1]),
            None if content["rights"] is None else CacheRights.from_json(content["rights"]),
        )


@dataclass(frozen=True)
class CacheLayout:
    """Layout of the rows stored for a lookup, worked out from its spec and the table's schema.

    `row_schema` is cached: the answered columns and, where rows must be found again by primary key, that key.
    `read_columns` are read from the table: keys, rows and whatever the condition needs. `keys` names the keys
    of the encrypted columns among them: if there are any, the cache is encrypted, and `cipher` opens it.
    """

    kind: CacheStructure
    key_schema: pa.Schema
    row_schema: pa.Schema
    primary_schema: pa.Schema | None
    columns: tuple[str, ...]
    read_columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    cipher: CacheCipher | None = field(default=None, repr=False, compare=False)

    def with_cipher(self, cipher: CacheCipher | None) -> CacheLayout:
        """Return the layout as it is used with the cache's key."""
        return replace(self, cipher=cipher)

    @property
    def _seal(self) -> Callable[[Rows], Rows] | None:
        return None if self.cipher is None else self.cipher.seal_keys

    @cached_property
    def key_codec(self) -> KeyCodec:
        """Encodes the columns joined by, as the key of a cache's entry."""
        return KeyCodec(self.key_schema, LOOKUP_SPACE, self._seal)

    @cached_property
    def row_codec(self) -> RowCodec:
        """Encodes the cached columns of a row."""
        return RowCodec(self.row_schema)

    @cached_property
    def primary_codec(self) -> KeyCodec:
        """Encodes the primary key, by which the join key of a row is remembered."""
        assert self.primary_schema is not None
        return KeyCodec(self.primary_schema, PRIMARY_SPACE, self._seal)

    @cached_property
    def key_row_codec(self) -> RowCodec:
        """Encodes the join key of a row, nulls and all, as it is remembered by primary key."""
        return RowCodec(self.key_schema)

    @property
    def many(self) -> bool:
        """Say whether a key may have several rows."""
        return self.kind is not CacheStructure.PRIMARY_KEY

    def to_json(self) -> dict[str, Any]:
        """Return the facts that a reader must know, stored with the cache."""
        primary = self.primary_schema
        return {
            "cache_format": CACHE_FORMAT,
            "row_codec": ROW_CODEC,
            "kind": str(self.kind),
            "key_schema": _text(self.key_schema),
            "row_schema": _text(self.row_schema),
            "primary_schema": None if primary is None else _text(primary),
            "columns": list(self.columns),
            "read_columns": list(self.read_columns),
            "keys": list(self.keys),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CacheLayout:
        """Return the reverse of `to_json`."""
        primary = content["primary_schema"]
        return cls(
            CacheStructure(content["kind"]),
            _schema(content["key_schema"]),
            _schema(content["row_schema"]),
            None if primary is None else _schema(primary),
            tuple(content["columns"]),
            tuple(content["read_columns"]),
            tuple(content["keys"]),
        )


def _text(schema: pa.Schema) -> str:
    return bytes(schema.serialize()).hex()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text)))


def structure_of(schema: TableSchema, keys: Sequence[str]) -> CacheStructure:
    """Choose the structure of a cache for a table joined by `keys`."""
    if not schema.primary_keys:
        return CacheStructure.NO_PRIMARY_KEY
    return (
        CacheStructure.PRIMARY_KEY
        if set(keys) == set(schema.primary_keys)
        else CacheStructure.SECONDARY_INDEX
    )


def layout_of(spec: LookupSpec, schema: TableSchema) -> CacheLayout:
    """Work out the layout of a lookup.

    Raises ColumnNotFoundError with the nearest names, InputError for repeated columns, UnsupportedTypeError
    for columns that cannot be cached or joined on, UnsupportedError for merge engines it cannot follow.
    """
    for names, role in ((spec.keys, "on"), (spec.columns, "select")):
        if not names:
            raise InputError(f"a lookup needs at least one column in {role}=")
        if len(set(names)) != len(names):
            raise InputError(f"{role}= names a column twice: {', '.join(names)}")
    condition = sorted({path[0] for path in columns_of(spec.where)}) if spec.where is not None else []
    partitions = lookup_options(schema.options, spec.options).scan_partitions
    if partitions:
        partitions.check(spec.identifier, schema)
        condition += schema.partition_keys
    if spec.rights is not None:
        condition += sorted(spec.rights.filtered_by)
    for name in (*spec.keys, *spec.columns, *condition):
        _require(name, spec.identifier, schema)
    kind = structure_of(schema, spec.keys)
    engine = schema.options.get("merge-engine", "deduplicate")
    if kind is not CacheStructure.NO_PRIMARY_KEY and engine != "deduplicate":
        raise UnsupportedError(
            f"{spec.identifier} has merge-engine {engine}: lookups follow deduplicate tables only"
        )
    primary = tuple(schema.primary_keys) if kind is CacheStructure.SECONDARY_INDEX else ()
    rows = tuple(dict.fromkeys((*spec.columns, *primary)))
    read = tuple(dict.fromkeys((*spec.keys, *rows, *condition)))
    layout = CacheLayout(
        kind,
        _pick(schema, spec.keys),
        _pick(schema, rows),
        _pick(schema, primary) if primary else None,
        spec.columns,
        read,
    )
    # Built here to refuse types that cannot be cached or joined on before anything starts.
    _ = layout.key_codec, layout.row_codec
    return layout


def _require(name: str, identifier: str, schema: TableSchema) -> None:
    if name not in schema.field_names:
        raise ColumnNotFoundError(f"{identifier} has no column {name!r}{nearest(name, schema.field_names)}")


def _pick(schema: TableSchema, names: Sequence[str]) -> pa.Schema:
    # Without nullability and metadata: the cache holds values and nulls, even of NOT NULL columns.
    fields = [schema.arrow_schema.field(name) for name in names]
    return pa.schema([pa.field(member.name, member.type) for member in fields])


def cache_id(table: Table, spec: LookupSpec) -> str:
    """Name the cache of a lookup: equal for lookups that would store the same, across jobs and drivers.

    It covers the table, the ids, names and types of the columns read (without NOT NULL), which of them are
    read as masks, under which keys the others are encrypted, the condition, the rights, how it is to be kept
    (`lookup.cache`), and the formats.
    """
    schema = table.schema
    layout = layout_of(spec, schema)
    seen = visibility(table)
    content = {
        "formats": [CACHE_FORMAT, ROW_CODEC],
        "table": table.copy_id,
        "kind": str(layout.kind),
        "keys": spec.keys,
        "columns": spec.columns,
        "primary": schema.primary_keys,
        "where": spec.to_json()["where"],
        "read": [
            [schema.field(name).id, name, type_to_json(schema.field(name).type.with_nullable(True))]
            for name in layout.read_columns
        ],
        "masked": list(seen.missing_keys(layout.read_columns)),
        "sealed": _with_keys(layout, seen).keys,
        "storage": lookup_options(table.options, spec.options).cache,
    }
    partitions = lookup_options(table.options, spec.options).scan_partitions
    if partitions:
        content["partitions"] = repr(partitions)
    if lookup_options(table.options, spec.options).remote:
        content["remote"] = True
    if spec.rights is not None:
        content["rights"] = spec.rights.to_json()
    if spec.group is not None:
        content["group"] = [*spec.group, schema.options["bucket"], schema.bucket_keys]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def pin_id(table: Table, spec: LookupSpec) -> str:
    """Name a lookup in the pins of its batches, which outlive changes of names and types of its columns."""
    schema = table.schema
    numbers = {member.name: str(member.id) for member in schema.fields}
    content = {
        "keys": [numbers[name] for name in spec.keys],
        "columns": [numbers[name] for name in spec.columns],
        # As text, since a literal has the type of its column.
        "where": None if spec.where is None else describe(with_columns(spec.where, numbers)),
        "partitions": repr(lookup_options(table.options, spec.options).scan_partitions),
        "group": spec.group,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def cached_layout(table: Table, spec: LookupSpec) -> CacheLayout:
    """Work out the layout of a lookup as this process caches it: with the keys that it holds."""
    return _with_keys(layout_of(spec, table.schema), visibility(table))


def _with_keys(layout: CacheLayout, seen: Visibility) -> CacheLayout:
    named = {key for name in layout.read_columns for key in seen.column(name).keys}
    return replace(layout, keys=tuple(sorted(named & seen.held))) if named else layout


def warn_of_masks(table: Table, layout: CacheLayout) -> None:
    """Warn with MaskedDataWarning if a lookup answers with masks."""
    masked = visibility(table).missing_keys(layout.read_columns)
    if masked:
        warn_user(
            f"the lookup on {table.identifier} answers with the masks of {', '.join(masked)}: the key is "
            "not held here; pass keys=...",
            MaskedDataWarning,
        )
