"""The keys in `orc.encrypt`, checked when a table is created or altered, not at its first row."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import EncryptionKeyError, KeyMissingError
from lockgate.framework.options import ORC_ENCRYPT

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider
    from lockgate.framework.store.schema.schema import TableSchema


def check_named_keys(
    schema: TableSchema, keys: KeyProvider | None, before: TableSchema | None = None
) -> None:
    """Raise KeyMissingError if `orc.encrypt` names a key that does not exist, and did not name it before.

    Without a provider nothing is known of keys, so nothing is refused; nor is a key that is denied to the
    caller, or whose service is silent: who declares a table need not be the one who writes it.
    """
    named = _named(schema) - (set() if before is None else _named(before))
    if keys is None or not named:
        return
    # Loaded only here, so that a plain table needs no cryptography.
    from lockgate.framework.keys import NoKeys

    held = keys.for_table(schema.table_options)
    if isinstance(held, NoKeys):
        return
    for name in sorted(named):
        try:
            held.current_key(name)
        except KeyMissingError as missing:
            text = str(missing).removesuffix("?")
            known = "" if "; known: " in text else _listed_keys(held)
            raise KeyMissingError(
                f"option {ORC_ENCRYPT.key!r} names a key that does not exist: {text}{known}"
            ) from None
        except EncryptionKeyError:
            continue


def _named(schema: TableSchema) -> set[str]:
    text = schema.table_options.get_option(ORC_ENCRYPT)
    if not text.strip():
        return set()
    from lockgate.framework.orc import parse_encrypt

    return set(parse_encrypt(text).values())


def _listed_keys(keys: KeyProvider) -> str:
    """Name the keys there are, as far as they can be listed."""
    with suppress(EncryptionKeyError):
        names = keys.key_names()
        if names:
            return f"; the keys there are: {', '.join(names)}"
    return ""
