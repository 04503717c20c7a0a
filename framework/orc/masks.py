"""What is stored in the clear in place of encrypted values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pyarrow as pa

from lockgate.framework.orc.options import Mask


def mask_array(values: pa.ChunkedArray, mask: Mask) -> pa.ChunkedArray:
    """The mask of a column, of the same type and length."""
    return _MASKS[mask](values)


def _nullify(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(values), values.type)], type=values.type)


def _sha256(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings become the upper-case hexadecimal SHA-256 of their UTF-8, binaries the digest itself, as
    Apache ORC does.

    Without a salt: whoever can guess a value can recognise it.
    """
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    chunks = [_digests(chunk, text) for chunk in values.chunks]
    return pa.chunked_array(chunks, type=values.type)


def _digests(chunk: pa.Array, text: bool) -> pa.Array:
    # Each distinct value is hashed once.
    encoded = chunk.dictionary_encode()
    binary = encoded.dictionary.cast(pa.large_binary())
    hashed = [_digest(value.as_buffer(), text) for value in binary]
    return pa.array(hashed, chunk.type).take(encoded.indices)


def _digest(value: pa.Buffer, text: bool) -> str | bytes:
    digest = hashlib.sha256(value)
    return digest.hexdigest().upper() if text else digest.digest()


_MASKS: dict[Mask, Callable[[pa.ChunkedArray], pa.ChunkedArray]] = {
    Mask.NULLIFY: _nullify,
    Mask.SHA256: _sha256,
}
