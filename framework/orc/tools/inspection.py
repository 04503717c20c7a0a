"""Inspection of an ORC file: layout, stripes, encrypted columns, statistics, and disclosure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import IntegrityError
from lockgate.framework.io import named_errors
from lockgate.framework.keys import KeyProvider, provider_from
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.layout import BLOOM_FILTERS, Compression, StreamKind, TypeKind
from lockgate.framework.orc.format.stripe import Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.format.types import TypeTree
from lockgate.framework.orc.integrity.authenticate import authenticate
from lockgate.framework.orc.integrity.header import find_header
from lockgate.framework.orc.isolation.isolation import Isolation
from lockgate.framework.orc.read.bloom_leaks import leaks_bloom_filters
from lockgate.framework.orc.read.reader import EncryptedOrcFile
from lockgate.framework.orc.sources.file_source import Source, open_source
from lockgate.framework.orc.tools.disclosure import EncryptedPart, reveals

_WRITERS = ("ORC Java", "ORC C++", "Presto", "Scritchley Go", "Trino", "cuDF")
_NESTED_NAMES = {TypeKind.LIST: ("_elem",), TypeKind.MAP: ("_key", "_value")}


@dataclass(frozen=True)
class Layout:
    """The layout of a file: sizes in bytes, compression and writer."""

    size: int
    rows: int
    compression: str
    block_size: int
    row_index_stride: int
    writer: str
    footer_bytes: int
    metadata_bytes: int
    encrypted_statistics_bytes: int


@dataclass(frozen=True)
class InspectedColumn:
    """A top-level column; `true_statistics` is False if the statistics are of its mask."""

    name: str
    type: str
    encrypted: bool
    true_statistics: bool
    minimum: Any
    maximum: Any
    null_count: int | None


@dataclass(frozen=True)
class InspectedStripe:
    """A stripe: its offset, rows, and sizes in bytes."""

    offset: int
    rows: int
    index_bytes: int
    data_bytes: int
    encrypted_bytes: int
    footer_bytes: int


@dataclass(frozen=True)
class InspectedStream:
    """One kind of stream of a column, over all stripes; `key` is None if it is in the clear."""

    column: str
    kind: str
    key: str | None
    bytes: int


@dataclass(frozen=True)
class InspectedKey:
    """A master key of the file; `held` is true if all its columns could be opened."""

    name: str
    version: int
    cipher: str
    held: bool


@dataclass(frozen=True)
class InspectedTags:
    """The integrity tags of a file; `checked_by` has the keys that can check them.

    `status` is that of the tail, since nothing else is read: "verified", "absent", "unverified", or
    "damaged", with the reason in `damage`.
    """

    status: str
    checked_by: tuple[str, ...] = ()
    stripe_tags: int = 0
    damage: str | None = None


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect_file`."""

    name: str
    layout: Layout
    integrity: InspectedTags
    columns: tuple[InspectedColumn, ...]
    keys: tuple[InspectedKey, ...]
    encrypted: tuple[EncryptedPart, ...]
    stripes: tuple[InspectedStripe, ...]
    streams: tuple[InspectedStream, ...]
    metadata: tuple[str, ...]
    reveals: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection as values for JSON; dates, times and decimals are texts, bytes are
        hexadecimal.
        """
        values = _plain(dataclasses.asdict(self))
        assert isinstance(values, dict)
        return values

    def text(self, *, streams: bool = False) -> str:
        """Return the inspection as text; with `streams`, including the sizes of all streams."""
        from lockgate.framework.orc.tools.inspection_text import text_of

        return text_of(self, streams=streams)

    def __str__(self) -> str:
        return self.text()


@checked_arguments
@named_errors
def inspect_file(
    source: Any, keys: KeyProvider | str | None = None, *, isolate: bool | Isolation = False
) -> Inspection:
    """Describe an ORC file, encrypted or not, from its tail and the footers of its stripes.

    It reads no data, except Bloom filters that a writer left in the clear.

    `source` and `keys` are as in `EncryptedOrcFile`. Statistics of a column are the true ones if you hold its
    key. A missing key is no error; a wrong one raises `WrongKeyError`. Damage raises `CorruptFileError`, or
    is in the result if only the tags reveal it.
    """
    provider = provider_from(keys)
    opened = open_source(source)
    try:
        tail = read_tail(opened)
        variants = Variants(tail, provider)
        stripes = [read_stripe(opened, tail, index) for index in range(tail.stripes)]
        parts = _parts(opened, tail, variants, stripes)
        file = EncryptedOrcFile(opened, provider, integrity="ignore", isolate=isolate)
        metadata = tuple(str(item.name) for item in tail.footer.metadata)
        return Inspection(
            tail.name,
            _layout(opened, tail),
            _tags(opened, tail, variants),
            _columns(file, tail, variants),
            _keys(tail, variants),
            parts,
            tuple(_stripe(tail, stripe) for stripe in stripes),
            _streams(tail, variants, stripes),
            metadata,
            tuple(reveals(tail, parts, metadata)),
        )
    finally:
        opened.close()


def _layout(source: Source, tail: Tail) -> Layout:
    footer, postscript = tail.footer, tail.postscript
    writer = _WRITERS[footer.writer] if footer.writer < len(_WRITERS) else f"writer number {footer.writer}"
    return Layout(
        source.size,
        int(footer.number_of_rows),
        Compression(tail.codec).name,
        int(tail.block_size),
        int(footer.row_index_stride),
        f"{writer} {footer.software_version}".strip(),
        int(postscript.footer_length),
        int(postscript.metadata_length),
        int(postscript.stripe_statistics_length),
    )


def _tags(source: Source, tail: Tail, variants: Variants) -> InspectedTags:
    try:
        stored = find_header(tail)
        if stored is None:
            return InspectedTags("absent")
        wraps = stored.header.wraps
        names = sorted({str(variants.key(wrap.variant)) for wrap in wraps if wrap.variant < len(variants)})
        tags = InspectedTags("unverified", tuple(names), sum(stored.header.counts))
        status = authenticate(source, tail, variants)[1]
    except IntegrityError as error:
        return InspectedTags("damaged", damage=str(error))
    return dataclasses.replace(tags, status=status)


def _keys(tail: Tail, variants: Variants) -> tuple[InspectedKey, ...]:
    numbers = range(len(variants))
    return tuple(
        InspectedKey(
            key.name,
            key.version,
            key.algorithm.name,
            all(number in variants.statistics for number in numbers if variants.key(number) == key),
        )
        for key in sorted({variants.key(number) for number in numbers})
    )


def _streams(tail: Tail, variants: Variants, stripes: Sequence[Stripe]) -> tuple[InspectedStream, ...]:
    sizes: dict[tuple[int, int, int], int] = {}
    for stripe in stripes:
        for each in stripe.streams:
            key = (each.column, -1 if each.variant is None else each.variant, each.kind)
            sizes[key] = sizes.get(key, 0) + each.length
    paths = {column: _path(tail.types, column) for column in sorted({column for column, _, _ in sizes})}
    return tuple(
        InspectedStream(
            paths[column],
            StreamKind(kind).name,
            None if variant < 0 else str(variants.key(variant)),
            size,
        )
        for (column, variant, kind), size in sorted(sizes.items())
    )


def _columns(file: EncryptedOrcFile, tail: Tail, variants: Variants) -> tuple[InspectedColumn, ...]:
    roots, columns = set(variants.roots()), []
    for field, top in zip(file.schema, tail.types.top_levels(), strict=True):
        statistics = file.statistics.get(field.name)
        encrypted = 0 in roots or not roots.isdisjoint(tail.types.subtree(top))
        columns.append(
            InspectedColumn(
                field.name,
                str(field.type),
                encrypted,
                not ({0, top} & roots) or variants.variant_of(top) is not None,
                None if statistics is None else statistics.minimum,
                None if statistics is None else statistics.maximum,
                None if statistics is None else statistics.null_count,
            )
        )
    return tuple(columns)


def _parts(
    source: Source, tail: Tail, variants: Variants, stripes: list[Stripe]
) -> tuple[EncryptedPart, ...]:
    masks = {root: each.mask for root, each in zip(variants.roots(), variants.columns(), strict=True)}
    parts = []
    for number in range(len(variants)):
        root, key = variants.root(number), variants.key(number)
        streams = [[each for each in stripe.streams if each.variant == number] for stripe in stripes]
        encodings = [stripe.footer.encryption[number].encoding for stripe in stripes]
        kinds = [
            {each.kind for each in column_encodings if each.column == root} for column_encodings in streams
        ]
        parts.append(
            EncryptedPart(
                column=_path(tail.types, root),
                key=str(key),
                cipher=key.algorithm.name,
                mask=masks[root],
                open=variants.variant_of(root) == number,
                stored_bytes=sum(each.length for column_encodings in streams for each in column_encodings),
                dictionary_entries=tuple(
                    max((int(each.dictionary_size) for each in column_encodings), default=0)
                    for column_encodings in encodings
                ),
                stripes_with_nulls=sum(StreamKind.PRESENT in column_encodings for column_encodings in kinds),
                bloom_filters=any(column_encodings & BLOOM_FILTERS for column_encodings in kinds),
                leaked_bloom_filters=leaks_bloom_filters(source, tail, stripes, root),
            )
        )
    return tuple(parts)


def _path(types: TypeTree, column: int) -> str:
    """Return the path of a column in the form of `orc.encrypt`: `a.b`, `list._elem`, `map._value`."""
    names: list[str] = []
    number = 0
    while number != column:
        type_ = types.types[number]
        kind = TypeKind(type_.kind)
        for index, child in enumerate(type_.subtypes):
            if child <= column <= types.last[child]:
                step_names = _NESTED_NAMES.get(kind, ())
                child_names = type_.field_names if kind is TypeKind.STRUCT else step_names
                names.append(str(child_names[index]) if index < len(child_names) else str(index))
                number = child
                break
    return ".".join(names) or types.top_name(0)


def _stripe(tail: Tail, stripe: Stripe) -> InspectedStripe:
    information = tail.footer.stripes[stripe.index]
    encrypted = sum(each.length for each in stripe.streams if each.variant is not None)
    return InspectedStripe(
        int(information.offset),
        int(information.number_of_rows),
        int(information.index_length),
        int(information.data_length),
        encrypted,
        int(information.footer_length),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.hex() if isinstance(value, bytes) else str(value)
