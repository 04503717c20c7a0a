"""The encrypted columns of a file: their keys, whether the caller holds them, and their masks."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lockgate.errors import EncryptionKeyError, KeyDeniedError, KeyMissingError, WrongKeyError
from lockgate.framework.keys import KeyAlgorithm, KeyMetadata, KeyProvider
from lockgate.framework.orc.encryption.encryption_options import Mask
from lockgate.framework.orc.encryption.stream_cipher import MAX_STRIPE, crypt
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import StreamKind, TypeKind, check_text, corrupt
from lockgate.framework.orc.format.tail import Tail

# No column inside lists has more values in a file.
_MAX_VALUES = 1 << 48


@dataclass(frozen=True)
class EncryptedColumn:
    """An encrypted column: its key, and the mask that readers get without the key.

    `column` is the top-level column, `path` its encrypted part (`address.zip`), often the same. `open` is
    true if the key was available.
    """

    column: str
    key: KeyMetadata
    mask: str
    open: bool
    path: str = ""


class Variants:
    """The encrypted variants of a file; those with an available key are open.

    If a key is missing or denied, its columns are read as masks, or with `strict` an error is raised. A wrong
    key or an unavailable key service is always an error. Each key is proven on the variant's encrypted
    statistics before use.
    """

    def __init__(self, tail: Tail, keys: KeyProvider, *, strict: bool = False) -> None:
        self._tail = tail
        self._provider = keys
        self._local_keys: dict[tuple[int, bytes], bytes] = {}
        self._unwrap_lock = threading.Lock()
        self._proven: set[tuple[int, bytes]] = set()
        self._variants = list(tail.footer.encryption.variants)
        self._keys = [_key(tail, variant) for variant in self._variants]
        self._masks = _masks(tail)
        self._stripe_ids, self._stripe_keys = _stripe_keys(tail)
        self.failures: dict[int, EncryptionKeyError] = {}
        self.statistics: dict[int, list[proto.Message]] = {}
        self._variant_by_column: dict[int, int] = {}
        for number in range(len(self._variants)):
            self._open(number)
        if strict and self.failures:
            root, error = next(iter(self.failures.items()))
            raise type(error)(self._strict_message(root, error)) from error

    def __len__(self) -> int:
        return len(self._variants)

    def __repr__(self) -> str:
        return f"Variants({', '.join(f'{column.column}: {column.key}' for column in self.columns())})"

    def variant_of(self, column: int) -> int | None:
        """Return the open variant from which a column is read; None if it is not encrypted or is masked."""
        return self._variant_by_column.get(column)

    def columns(self) -> list[EncryptedColumn]:
        """Return the encrypted columns in the order of the schema."""
        columns: dict[int, EncryptedColumn] = {}
        for number, variant in enumerate(self._variants):
            opened = self._variant_by_column.get(variant.root) is not None
            name = self._tail.types.top_name(variant.root)
            if variant.root not in columns or self._variant_by_column.get(variant.root) == number:
                columns[variant.root] = EncryptedColumn(
                    name,
                    self._keys[number],
                    self._mask(variant.root),
                    opened,
                    self._path(variant.root),
                )
        return [columns[root] for root in sorted(columns)]

    def roots(self) -> list[int]:
        """Return the numbers of the encrypted columns."""
        return sorted({variant.root for variant in self._variants})

    def masked_roots(self) -> dict[int, str]:
        """Return the masks of the encrypted columns that are read as masks, by column number."""
        return {root: self._mask(root) for root in self.roots() if root not in self._variant_by_column}

    def unlock(self, stripes: Iterable[int], columns: Collection[int]) -> None:
        """Unwrap all keys that these columns need in these stripes; in merged files, stripes have their own
        keys.

        This detects an unavailable key service before decoding begins.
        """
        needed_variants = {
            self._variant_by_column[column] for column in columns if column in self._variant_by_column
        }
        for stripe in stripes:
            for variant in needed_variants:
                self.stripe_key(variant, stripe)

    def root(self, variant: int) -> int:
        """Return the column number of a variant."""
        return int(self._variants[variant].root)

    def stripe_id(self, stripe: int) -> int:
        """Return the stripe number for the counters of streams; it differs from the index in merged files."""
        return self._stripe_ids[stripe]

    def stripe_key(self, variant: int, stripe: int) -> bytes:
        """Return the local key of a variant in a stripe."""
        return self._local_key(variant, self._stripe_keys[stripe][variant])

    def key(self, variant: int) -> KeyMetadata:
        """Return the master key of a variant."""
        return self._keys[variant]

    def is_proven(self, variant: int, stripe: int) -> bool:
        """Return whether the key of a variant in a stripe was proven."""
        return (variant, self._stripe_keys[stripe][variant]) in self._proven

    def set_proven(self, variant: int, stripe: int) -> None:
        """Record that the key of a variant in a stripe was proven."""
        self._proven.add((variant, self._stripe_keys[stripe][variant]))

    def footer_key(self, variant: int) -> bytes:
        """Return the local key of a variant's statistics."""
        return self._local_key(variant, self._variants[variant].encrypted_key)

    def stripe_statistics(self, variant: int) -> list[proto.Message]:
        """Return the streams of a variant's stripe statistics."""
        return list(self._variants[variant].stripe_statistics)

    def __iter__(self) -> object:
        return iter(range(len(self._variants)))

    def _open(self, number: int) -> None:
        variant = self._variants[number]
        if variant.root in self._variant_by_column:
            return  # Columns are read from the first variant with an available key.
        try:
            key = self.footer_key(number)
        except (KeyMissingError, KeyDeniedError) as error:
            self.failures.setdefault(variant.root, error)
            return
        self.statistics[number] = self._prove(number, key)
        self._proven.add((number, variant.encrypted_key))
        self.failures.pop(variant.root, None)
        for column in self._tail.types.subtree(variant.root):
            self._variant_by_column.setdefault(column, number)

    def _strict_message(self, root: int, error: EncryptionKeyError) -> str:
        return f"column {self._path(root)!r} of {self._tail.name} cannot be read: {error}"

    def _path(self, root: int) -> str:
        return self._tail.types.path(root) or "<all rows>"

    def _local_key(self, variant: int, encrypted: bytes) -> bytes:
        key = self._local_keys.get((variant, encrypted))
        if key is not None:
            return key
        with self._unwrap_lock:  # Threads that need the same key unwrap it once.
            key = self._local_keys.get((variant, encrypted))
            if key is None:
                key = self._local_keys[variant, encrypted] = self._unwrap(variant, encrypted)
        return key

    def _unwrap(self, variant: int, encrypted: bytes) -> bytes:
        key = self._keys[variant]
        if len(encrypted) != key.algorithm.key_length:
            raise corrupt(
                self._tail.name,
                self._tail.footer_offset,
                f"an encrypted key of {key} has {len(encrypted)} bytes",
            )
        return self._provider.decrypt_local_key(key, encrypted)

    def _prove(self, number: int, key: bytes) -> list[proto.Message]:
        """Decrypt a variant's file statistics; with a wrong key the result does not parse."""
        variant, tail = self._variants[number], self._tail
        raw = crypt(key, variant.root, StreamKind.FILE_STATISTICS, tail.stripes + 1, variant.file_statistics)
        try:
            statistics = proto.FileStatistics.FromString(unframe(tail.codec, raw, tail.block_size))
        except (ValueError, proto.DecodeError):
            statistics = None
        count = len(tail.types.subtree(variant.root))
        max_values = _MAX_VALUES if _is_repeated(tail, variant.root) else tail.footer.number_of_rows
        if (
            statistics is None
            or len(statistics.column) != count
            or not _plausible(statistics.column[0], max_values)
        ):
            raise WrongKeyError(
                f"the key {self._keys[number]} does not open column "
                f"{self._path(variant.root)!r} of {tail.name}: "
                "the file was written with another key, or its encrypted statistics are damaged"
            )
        return list(statistics.column)

    def _mask(self, root: int) -> str:
        return self._masks.get(root, "nullify")


def _plausible(statistics: proto.Message, max_values: int) -> bool:
    # Without compression, noise may parse, so the number of values is checked, too.
    return bool(statistics.HasField("number_of_values") and statistics.number_of_values <= max_values)


def _is_repeated(tail: Tail, column: int) -> bool:
    """Return whether a column is inside a list or map, so that it may have more values than rows."""
    return any(
        type_.kind in (TypeKind.LIST, TypeKind.MAP) and number < column <= tail.types.last[number]
        for number, type_ in enumerate(tail.types.types[:column])
    )


def _key(tail: Tail, variant: proto.Message) -> KeyMetadata:
    key = tail.footer.encryption.key[variant.key]
    return KeyMetadata(key.key_name, key.key_version, KeyAlgorithm(key.algorithm))


def _masks(tail: Tail) -> dict[int, str]:
    masks: dict[int, str] = {}
    for mask in tail.footer.encryption.mask:
        parts = [mask.name, *mask.mask_parameters]
        check_text(tail.name, tail.footer_offset, "the name of a mask", *parts)
        masks.update(dict.fromkeys(mask.columns, str(Mask(mask.name, tuple(mask.mask_parameters)))))
    return masks


def _stripe_keys(tail: Tail) -> tuple[list[int], list[list[bytes]]]:
    """Return the number and the encrypted keys of each stripe; a stripe without them continues the previous
    stripe's.
    """
    numbers: list[int] = []
    keys: list[list[bytes]] = []
    number, current = 0, list[bytes]()
    if tail.footer.encryption.variants and max(tail.stripes + 1, len(tail.types)) > MAX_STRIPE:
        raise corrupt(tail.name, tail.footer_offset, "it has more stripes or columns than can be encrypted")
    for index, stripe in enumerate(tail.footer.stripes):
        number = stripe.encrypt_stripe_id if stripe.HasField("encrypt_stripe_id") else number + 1
        if number > MAX_STRIPE:
            raise corrupt(
                tail.name, tail.footer_offset, f"stripe {index} has the number {number} in its counters"
            )
        current = list(stripe.encrypted_local_keys) or current
        numbers.append(number)
        keys.append(current)
    return numbers, keys
