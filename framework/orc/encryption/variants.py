"""The encrypted columns of a file: their keys, which of these are held, and the masks of the others."""

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

# More values than a column within lists has in any file.
_MOST_VALUES = 1 << 48


@dataclass(frozen=True)
class EncryptedColumn:
    """Public facts of an encrypted column: the key it needs and the mask shown without it.

    `column` is the top-level column, `path` the encrypted part of it (`address.zip`), mostly the same.
    """

    column: str
    key: KeyMetadata
    mask: str
    open: bool
    path: str = ""


class Variants:
    """The encrypted variants of a file, opened as far as the keys reach.

    A key that is missing or denied leaves its columns masked, unless `strict`; a wrong key or a silent key
    service is always an error. Every key is proven on the variant's encrypted statistics before anything is
    decoded with it.
    """

    def __init__(self, tail: Tail, keys: KeyProvider, *, strict: bool = False) -> None:
        self._tail = tail
        self._provider = keys
        self._local_keys: dict[tuple[int, bytes], bytes] = {}
        self._asking = threading.Lock()
        self._proven: set[tuple[int, bytes]] = set()
        self._variants = list(tail.footer.encryption.variants)
        self._keys = [_key(tail, variant) for variant in self._variants]
        self._masks = _masks(tail)
        self._stripe_ids, self._stripe_keys = _stripe_keys(tail)
        self.failures: dict[int, EncryptionKeyError] = {}
        self.statistics: dict[int, list[proto.Message]] = {}
        self._owner: dict[int, int] = {}
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
        """Return the open variant that column number `column` is read from; None if not encrypted, or
        masked.
        """
        return self._owner.get(column)

    def columns(self) -> list[EncryptedColumn]:
        """Return the encrypted columns in the order of the schema; nested ones by the top-level column."""
        found: dict[int, EncryptedColumn] = {}
        for number, variant in enumerate(self._variants):
            opened = self._owner.get(variant.root) is not None
            name = self._tail.types.top_name(variant.root)
            if variant.root not in found or self._owner.get(variant.root) == number:
                found[variant.root] = EncryptedColumn(
                    name,
                    self._keys[number],
                    self._mask(variant.root),
                    opened,
                    self._named(variant.root),
                )
        return [found[root] for root in sorted(found)]

    def roots(self) -> list[int]:
        """Return the numbers of the encrypted columns."""
        return sorted({variant.root for variant in self._variants})

    def masked_roots(self) -> dict[int, str]:
        """Return the numbers of the encrypted columns that are read as masks, and which mask that is."""
        return {root: self._mask(root) for root in self.roots() if root not in self._owner}

    def unlock(self, stripes: Iterable[int], columns: Collection[int]) -> None:
        """Ask for every key that these columns need in these stripes; in merged files stripes have their own.

        So a key service that does not answer is found before anything is decoded.
        """
        wanted = {self._owner[column] for column in columns if column in self._owner}
        for stripe in stripes:
            for variant in wanted:
                self.stripe_key(variant, stripe)

    def root(self, variant: int) -> int:
        """Return the column number of a variant."""
        return int(self._variants[variant].root)

    def stripe_id(self, stripe: int) -> int:
        """Return the number of a stripe in the counters of its streams; differs from its index in merged
        files.
        """
        return self._stripe_ids[stripe]

    def stripe_key(self, variant: int, stripe: int) -> bytes:
        """Return the local key of a variant in a stripe."""
        return self._local_key(variant, self._stripe_keys[stripe][variant])

    def key(self, variant: int) -> KeyMetadata:
        """Return the master key of a variant."""
        return self._keys[variant]

    def is_proven(self, variant: int, stripe: int) -> bool:
        """Return whether the key of a variant in a stripe is known to be the right one."""
        return (variant, self._stripe_keys[stripe][variant]) in self._proven

    def set_proven(self, variant: int, stripe: int) -> None:
        """Note that the key of a variant in a stripe is the right one."""
        self._proven.add((variant, self._stripe_keys[stripe][variant]))

    def footer_key(self, variant: int) -> bytes:
        """Return the local key of a variant's statistics."""
        return self._local_key(variant, self._variants[variant].encrypted_key)

    def stripe_statistics(self, variant: int) -> list[proto.Message]:
        """Return the streams that hold a variant's stripe statistics."""
        return list(self._variants[variant].stripe_statistics)

    def __iter__(self) -> object:
        return iter(range(len(self._variants)))

    def _open(self, number: int) -> None:
        variant = self._variants[number]
        if variant.root in self._owner:
            return  # The first variant whose key is held is the one to read.
        try:
            key = self.footer_key(number)
        except (KeyMissingError, KeyDeniedError) as error:
            self.failures.setdefault(variant.root, error)
            return
        self.statistics[number] = self._prove(number, key)
        self._proven.add((number, variant.encrypted_key))
        self.failures.pop(variant.root, None)
        for column in self._tail.types.subtree(variant.root):
            self._owner.setdefault(column, number)

    def _strict_message(self, root: int, error: EncryptionKeyError) -> str:
        return f"column {self._named(root)!r} of {self._tail.name} cannot be read: {error}"

    def _named(self, root: int) -> str:
        return self._tail.types.path(root) or "<all rows>"

    def _local_key(self, variant: int, encrypted: bytes) -> bytes:
        held = self._local_keys.get((variant, encrypted))
        if held is not None:
            return held
        with self._asking:  # Several threads may want the same key, which is asked for once.
            held = self._local_keys.get((variant, encrypted))
            if held is None:
                held = self._local_keys[variant, encrypted] = self._unwrap(variant, encrypted)
        return held

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
        """Decrypt a variant's file statistics: with a wrong key they are noise, which does not parse."""
        variant, tail = self._variants[number], self._tail
        raw = crypt(key, variant.root, StreamKind.FILE_STATISTICS, tail.stripes + 1, variant.file_statistics)
        try:
            statistics = proto.FileStatistics.FromString(unframe(tail.codec, raw, tail.block_size))
        except (ValueError, proto.DecodeError):
            statistics = None
        count = len(tail.types.subtree(variant.root))
        most = _MOST_VALUES if _repeats(tail, variant.root) else tail.footer.number_of_rows
        if (
            statistics is None
            or len(statistics.column) != count
            or not _plausible(statistics.column[0], most)
        ):
            raise WrongKeyError(
                f"the key {self._keys[number]} does not open column "
                f"{self._named(variant.root)!r} of {tail.name}: "
                "the file was written with another key, or its encrypted statistics are damaged"
            )
        return list(statistics.column)

    def _mask(self, root: int) -> str:
        return self._masks.get(root, "nullify")


def _plausible(statistics: proto.Message, most: int) -> bool:
    # Without compression there is no framing to break, so the number of values must fit as well.
    return bool(statistics.HasField("number_of_values") and statistics.number_of_values <= most)


def _repeats(tail: Tail, column: int) -> bool:
    """Return whether a column is in a list or map, where it may have more values than there are rows."""
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
    """Return, for each stripe, its number and encrypted keys; what one leaves out continues the one
    before.
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
