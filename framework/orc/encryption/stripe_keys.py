"""Checks of stripe keys, which differ from the file's keys in merged files."""

from __future__ import annotations

from lockgate.errors import WrongKeyError
from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import StreamKind
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.file_source import Source


def prove_stripe_keys(
    source: Source, tail: Tail, variants: Variants, stripe: Stripe, columns: frozenset[int] | None = None
) -> None:
    """Raise `WrongKeyError` if a key of this stripe does not decrypt the stripe's row index.


    With `columns`, only their keys are checked. A key that decrypted the file's statistics is proven already;
    a stripe without row index cannot prove a key.
    """
    for stream in stripe.streams:
        variant = stream.variant
        if variant is None or stream.kind != StreamKind.ROW_INDEX or stream.column != variants.root(variant):
            continue
        if columns is not None and columns.isdisjoint(tail.types.subtree(stream.column)):
            continue
        if variants.variant_of(stream.column) == variant and not variants.is_proven(variant, stripe.index):
            if not _opens(source, tail, variants, stripe, stream):
                raise WrongKeyError(
                    f"the key {variants.key(variant)} does not open column "
                    f"{tail.types.top_name(stream.column)!r} in stripe {stripe.index} of {tail.name}: it was "
                    "written with another key, or its encrypted keys are damaged"
                )
            variants.set_proven(variant, stripe.index)


def _opens(source: Source, tail: Tail, variants: Variants, stripe: Stripe, stream: Stream) -> bool:
    assert stream.variant is not None
    key = variants.stripe_key(stream.variant, stripe.index)
    stored = bytes(source.read_at(stream.offset, stream.length))
    content = crypt(key, stream.column, stream.kind, variants.stripe_id(stripe.index), stored)
    try:
        index = proto.RowIndex.FromString(unframe(tail.codec, content, tail.block_size))
    except (ValueError, proto.DecodeError):
        return False
    stride = tail.footer.row_index_stride
    return not stride or len(index.entry) == -(-stripe.rows // stride)
