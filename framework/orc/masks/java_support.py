"""Masks that Java, which encrypts in Spark's tasks, writes exactly as Python does, by column type.

The connector has its own masks (`Masks.java`), because ORC's fail on strings, small decimals, and values in
lists and maps. `tests/integration/test_masks_spark.py` compares Java's and Python's masks for all types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lockgate.framework.orc.encryption.encryption_options import Encryption, Mask
from lockgate.framework.orc.format.column_paths import ELEMENT, KEY, VALUE, Path, split
from lockgate.framework.types import DataField, DataType, Kind

_FLAT = frozenset(Kind) - {Kind.ARRAY, Kind.MAP, Kind.ROW, Kind.TIME}

# The flat types that each mask supports; nested types of these are supported, too.
WRITTEN: Mapping[str, frozenset[Kind]] = {"nullify": _FLAT | {Kind.TIME}, "redact": _FLAT, "sha256": _FLAT}

# Length of a hexadecimal digest; Java truncates it in shorter columns.
_DIGEST = 64


def why_not_java(encryption: Encryption, fields: Sequence[DataField]) -> str | None:
    """Return the reason why Spark cannot write a table with these columns, with advice; None if it can."""
    types = {field.name: field.type for field in fields}

    def path_of(name: str) -> Path:
        return (name,) if name in types else split(name)

    masks = {path_of(name): mask for name, mask in encryption.masks.items()}
    for name in encryption.columns:
        path = path_of(name)
        for column, mask, leaf in _leaves(masks, path, _type_at(types, path), encryption.mask_of(name)):
            reason = _why_not(mask, leaf)
            if reason:
                return (
                    f"column {'.'.join(column)!r} of type {leaf} cannot have the mask {str(mask)!r}: {reason}"
                )
    return None


def _why_not(mask: Mask, leaf: DataType) -> str | None:
    if mask.name not in WRITTEN:
        return (
            "Spark encrypts by Java, which has no masks of Python plugins; choose nullify, redact or sha256, "
            "or write files without a table by lockgate.orc.write_table"
        )
    if mask.name == "sha256" and leaf.is_string and (leaf.length or _DIGEST) < _DIGEST:
        return (
            f"a digest has {_DIGEST} characters and would be cut off; declare the column as STRING, or "
            "choose nullify or redact"
        )
    if leaf.kind not in WRITTEN[mask.name]:
        return "Java would write another mask than Python; choose nullify"
    return None


def _type_at(types: Mapping[str, DataType], path: Sequence[str]) -> DataType:
    data_type = types[path[0]]
    for part in path[1:]:
        data_type = dict(_parts(data_type))[part]
    return data_type


def _parts(data_type: DataType) -> Iterator[tuple[str, DataType]]:
    for name, inner in ((ELEMENT, data_type.element), (KEY, data_type.key), (VALUE, data_type.value)):
        if inner is not None:
            yield name, inner
    for field in data_type.fields:
        yield field.name, field.type


def _leaves(
    masks: Mapping[Path, Mask], path: Path, data_type: DataType, mask: Mask
) -> Iterator[tuple[Path, Mask, DataType]]:
    """Yield the flat parts of a column with their masks; a part without a mask has that of its parent."""
    mask = masks.get(path, mask)
    parts = list(_parts(data_type))
    if not parts:
        yield path, mask, data_type
    for name, inner in parts:
        yield from _leaves(masks, (*path, name), inner, mask)
