"""Masks: values stored in the clear in place of encrypted values.

A mask is created from its name and parameters. Apache ORC's three masks are here; plugins add others by the
hook `lockgate_masks`. Masks get only flat arrays: lists, maps and structs keep their shape, and the values
inside are masked. `nullify` makes the complete column null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import LockgateError, OptionError, PluginError, nearest
from lockgate.framework.orc.encryption.encryption_options import Encryption, Mask
from lockgate.framework.orc.format.column_paths import ColumnTree, OrcColumn
from lockgate.framework.orc.format.text_kinds import fit_text, text_kind
from lockgate.framework.orc.masks.redact import Redact
from lockgate.framework.plugins import MaskFactory, MaskFunction, plugins

# Values that are masked together; limits the memory that a mask needs.
_ROWS = 256 * 1024
_HEXADECIMAL = 64


def nullify(parameters: Sequence[str]) -> MaskFunction:
    """Return the mask that makes every value null."""
    _no_parameters("nullify", parameters)
    return lambda values: pa.nulls(len(values), values.type)


def sha256(parameters: Sequence[str]) -> MaskFunction:
    """Return the mask SHA-256: upper-case hexadecimal for strings, the digest for binaries, null for others.


    The digest has no salt, so anyone who guesses a value can recognise it.
    """
    _no_parameters("sha256", parameters)
    return _sha256


STANDARD: Mapping[str, MaskFactory] = {"nullify": nullify, "redact": Redact, "sha256": sha256}


def mask_function(mask: Mask) -> MaskFunction:
    """Return the function of a mask; `OptionError` for an unknown name or wrong parameters."""
    factory = STANDARD.get(mask.name)
    if factory is None:
        plugin_masks = plugins().masks()
        factory = plugin_masks.get(mask.name)
        if factory is None:
            raise OptionError(
                f"there is no mask {mask.name!r}{nearest(mask.name, [*STANDARD, *plugin_masks])}"
            )
    try:
        return factory(mask.parameters)
    except LockgateError:
        raise
    except (ValueError, TypeError) as error:
        raise OptionError(f"mask {str(mask)!r}: {error}") from error


def check_masks(encryption: Encryption, tree: ColumnTree) -> None:
    """Raise `OptionError` for an unknown mask, or one that does not support its column's type."""
    for name in encryption.columns:
        _check(tree.find("orc.encrypt", name), encryption, encryption.mask_of(name), is_root=True)


class ColumnMasks:
    """The masks of a schema's columns."""

    def __init__(self, encryption: Encryption, tree: ColumnTree) -> None:
        self.by_number = {
            tree.find("orc.encrypt", name).number: encryption.mask_of(name) for name in encryption.columns
        } | {tree.find("orc.mask", name).number: mask for name, mask in encryption.masks.items()}
        self._functions = {mask: mask_function(mask) for mask in self.by_number.values()}

    def mask_column(self, column: OrcColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a top-level column with its encrypted values masked; type and length stay the same."""
        if self.by_number.get(column.number) == Mask.NULLIFY:
            return pa.chunked_array([pa.nulls(len(values), values.type)], type=values.type)
        chunks = [self._masked(column, piece, None) for piece in _pieces(values.chunks)]
        return pa.chunked_array(chunks, type=values.type)

    def _masked(self, column: OrcColumn, values: pa.Array, mask: Mask | None) -> pa.Array:
        mask = self.by_number.get(column.number, mask)
        if mask is None and not any(number in self.by_number for number in column.numbers):
            return values
        if mask == Mask.NULLIFY:
            return pa.nulls(len(values), values.type)
        if not column.children:
            assert mask is not None
            return _apply(column, mask, self._functions[mask], values)
        if pa.types.is_struct(values.type):
            parts = [
                self._masked(child, values.field(index), mask) for index, child in enumerate(column.children)
            ]
            return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=values.is_null())
        return self._masked_list(column, values, mask)

    def _masked_list(self, column: OrcColumn, values: pa.Array, mask: Mask | None) -> pa.Array:
        """Return a list or map with masked elements; only those of its rows, since the array may be a
        slice.
        """
        offsets = values.offsets
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        inner = values.values.slice(first, last - first)
        if pa.types.is_map(values.type):
            parts = [
                self._masked(child, inner.field(index), mask) for index, child in enumerate(column.children)
            ]
            inner = pa.StructArray.from_arrays(parts, fields=list(inner.type))
        else:
            inner = self._masked(column.children[0], inner, mask)
        starts = pc.subtract(offsets, pa.scalar(first, offsets.type)) if first else offsets
        if starts.offset:
            starts = pa.array(starts.to_numpy())
        return pa.Array.from_buffers(
            values.type, len(values), [_validity(values), starts.buffers()[1]], children=[inner]
        )


def _apply(column: OrcColumn, mask: Mask, function: MaskFunction, values: pa.Array) -> pa.Array:
    """Mask a flat array, and check the result's type and length."""
    masked = function(values)
    if not isinstance(masked, pa.Array) or masked.type != values.type or len(masked) != len(values):
        result = f"{len(masked)} of {masked.type}" if isinstance(masked, pa.Array) else type(masked).__name__
        raise PluginError(
            f"mask {str(mask)!r} returned {result} for {len(values)} values of {values.type} "
            f"of column {column.name!r}; a mask must keep type and length",
            mask.name,
        )
    kind = text_kind(column.field)
    if kind is not None:
        masked = fit_text(masked, kind)
    if column.is_key and masked.null_count:
        # Arrow aborts the process for a map with null keys.
        raise OptionError(_null_keys_message(column, mask))
    return masked


# --- checks ---


def _check(column: OrcColumn, encryption: Encryption, mask: Mask, *, is_root: bool) -> None:
    if mask == Mask.NULLIFY:
        for part in column.walk():
            if part is not column and part.name in encryption.masks:
                raise OptionError(
                    f"orc.mask: the mask of {part.name!r} has no effect, because `nullify` removes all of "
                    f"{column.name!r}; name another mask for {column.name!r} as well"
                )
        if column.is_key:
            raise OptionError(_null_keys_message(column, mask))
        return
    if not column.children:
        _check_flat(column, mask, named=is_root or column.name in encryption.masks)
    for child in column.children:
        _check(child, encryption, encryption.masks.get(child.name, mask), is_root=False)


def _check_flat(column: OrcColumn, mask: Mask, *, named: bool) -> None:
    type_ = column.field.type
    if named and mask == Mask.SHA256 and not _has_digest(type_):
        raise OptionError(
            f"orc.mask: sha256 masks strings and binaries, but column {column.name!r} is {type_}; use nullify"
        )
    try:
        function = mask_function(mask)
        _apply(column, mask, function, _sample(type_))
    except OptionError as error:
        raise OptionError(f"orc.mask: column {column.name!r}: {error}") from error
    except (LockgateError, MemoryError):
        raise
    except Exception as error:  # a plugin may raise anything
        raise OptionError(
            f"orc.mask: mask {str(mask)!r} cannot mask column {column.name!r} of type {type_}: {error}"
        ) from error


def _null_keys_message(column: OrcColumn, mask: Mask) -> str:
    return (
        f"the mask {str(mask)!r} makes {column.name!r} null, but keys of a map are never null: Arrow "
        "aborts the process that reads one; name another mask, or encrypt the whole map"
    )


def _sample(type_: pa.DataType) -> pa.Array:
    """Return an array with one value, zero or empty, of any flat type."""
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return pa.array([0], pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(type_)
    empty = [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")]
    has_data = pa.types.is_large_string(type_) or pa.types.is_string(type_) or _has_digest(type_)
    if pa.types.is_fixed_size_binary(type_):
        return pa.array([bytes(type_.byte_width)], type_)
    return pa.Array.from_buffers(type_, 1, empty if has_data else empty[:2])


def _no_parameters(name: str, parameters: Sequence[str]) -> None:
    if parameters:
        raise OptionError(f"the mask {name} has no parameters, but got {', '.join(parameters)}")


# --- digests ---


def _has_digest(type_: pa.DataType) -> bool:
    return bool(_is_text(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _sha256(values: pa.Array) -> pa.Array:
    if not _has_digest(values.type):
        return pa.nulls(len(values), values.type)
    # Distinct values are hashed once.
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.large_binary()).to_pylist()
    digests = b"".join([hashlib.sha256(value).digest() for value in distinct])
    if _is_text(values.type):
        digests = digests.hex().upper().encode()
    width = _HEXADECIMAL if _is_text(values.type) else _HEXADECIMAL // 2
    fixed = pa.Array.from_buffers(pa.binary(width), len(distinct), [None, pa.py_buffer(digests)])
    return fixed.cast(pa.large_binary()).cast(values.type).take(encoded.indices)


# --- arrays ---


def _pieces(chunks: Iterable[pa.Array]) -> Iterable[pa.Array]:
    return (chunk.slice(start, _ROWS) for chunk in chunks for start in range(0, len(chunk), _ROWS))


def _validity(values: pa.Array) -> Any:
    if not values.null_count:
        return None
    flags = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
