"""The JSON document that lists keys, in a key file and in the table option `orc.keys.wrapped`."""

from __future__ import annotations

import json

from lockgate.errors import LockgateError

FORMAT_VERSION = 1


def key_entries(text: str | bytes, what: str, error: type[LockgateError]) -> list[object]:
    """Return the entries of the list of keys; raises `error`, which names `what` but quotes no text."""
    # Without the cause of the error, which would quote keys in the text.
    try:
        document = json.loads(text)
    except ValueError:
        raise error(f"{what} is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT_VERSION:
        raise error(f"{what} is not of format {FORMAT_VERSION}")
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise error(f'{what} has no list "keys"')
    return entries
