"""Disclosure report: what an ORC file reveals to readers without a key, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.header import ATTRIBUTE

_MASKS = {
    "nullify": "nothing of its values, since its mask is null throughout",
    "sha256": (
        "the SHA-256 of each value, without salt: which values are null, which are equal, and every value "
        "that can be guessed"
    ),
    "redact": "which values are null, and the shape of each: how many digits or letters, the sign, the year",
}


@dataclass(frozen=True)
class EncryptedPart:
    """An encrypted column or part of one; `dictionary_entries` is by stripe, 0 without a dictionary.

        `stored_bytes` counts all its encrypted streams. `open` is true if the key is available.
    `leaked_bloom_filters` is true if the Bloom filters of the true values are in the clear.
    """

    column: str
    key: str
    cipher: str
    mask: str
    open: bool
    stored_bytes: int
    dictionary_entries: tuple[int, ...]
    stripes_with_nulls: int
    bloom_filters: bool
    leaked_bloom_filters: bool = False


def reveals(tail: Tail, parts: Sequence[EncryptedPart], metadata: Sequence[str]) -> Iterator[str]:
    """Yield what the file reveals, as clauses after "anyone who has this file knows"."""
    rows, stripes = int(tail.footer.number_of_rows), tail.stripes
    columns = len(tail.types.names)
    yield (
        f"the names and types of all {count(columns, 'column')}, and the size: {count(rows, 'row')} in "
        f"{count(stripes, 'stripe')}"
    )
    plain = _plain_columns(tail)
    if plain:
        yield f"every value of {', '.join(plain)}: not encrypted"
    user_metadata = [name for name in metadata if not name.startswith(ATTRIBUTE)]
    if user_metadata:
        yield f"the file's own metadata: {', '.join(user_metadata)}"
    if parts:
        keys = sorted({part.key for part in parts})
        yield f"which keys are needed, by name and version: {', '.join(keys)}"
        masks = sorted({part.mask for part in parts})
        yield f"which columns are encrypted, and by which mask each is shown: {', '.join(masks)}"
    if len(user_metadata) < len(metadata):
        yield "that it has integrity tags, and how many; to check them takes a key"
    for part in parts:
        yield from _part_sentences(part, rows, stripes)


def _part_sentences(part: EncryptedPart, rows: int, stripes: int) -> Iterator[str]:
    mask = part.mask.split(",")[0]
    if "." in part.column:
        yield (
            f"{part.column}: what encloses it is in the clear: which structs, lists and maps around it are "
            "null, and how many elements each has"
        )
    yield f"{part.column}: {_MASKS.get(mask, f'whatever the mask {part.mask} leaves of each value')}"
    share = f", {part.stored_bytes / rows:.2g} a row" if rows else ""
    yield (
        f"{part.column}: that its true values take {count(part.stored_bytes, 'byte')}{share}, and each of "
        "their streams its length, so roughly how long or how repetitive they are"
    )
    if part.stripes_with_nulls:
        yield (
            f"{part.column}: in which stripes some of its values are null ({part.stripes_with_nulls} of "
            f"{stripes}), though not which values"
        )
    sizes = [size for size in part.dictionary_entries if size]
    if sizes:
        size_range = f"{sizes[0]}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
        yield (
            f"{part.column}: how many distinct values a stripe has, by the size of its dictionary: "
            f"{size_range}"
        )
    if part.leaked_bloom_filters:
        yield (
            f"{part.column}: WHICH VALUES IT HOLDS, of all that can be guessed: the Bloom filters of its "
            "true values are in the clear (ORC's Java library writes them so); write it again without them"
        )
    if part.bloom_filters:
        yield f"{part.column}: that it has Bloom filters, and their size"


def _plain_columns(tail: Tail) -> list[str]:
    roots = {int(variant.root) for variant in tail.footer.encryption.variants}
    if 0 in roots:
        return []
    descriptions = []
    for name, top in zip(tail.types.names, tail.types.top_levels(), strict=True):
        if top in roots:
            continue
        is_partly_encrypted = not roots.isdisjoint(tail.types.subtree(top))
        descriptions.append(f"{name} (but for its encrypted part)" if is_partly_encrypted else name)
    return descriptions


def count(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
