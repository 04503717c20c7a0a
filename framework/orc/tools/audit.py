"""Audit of a file: the columns that are not encrypted as a table's options require."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.framework.io import named_errors
from lockgate.framework.keys import KeyProvider
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.column_paths import find_column
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.format.types import TypeTree
from lockgate.framework.orc.integrity.header import find_header
from lockgate.framework.orc.sources.file_source import open_source


@dataclass(frozen=True)
class Audit:
    """Columns whose encryption differs from the options; `plain` and `outdated` are empty if there are none.

    `encrypted` is true if the file has encrypted columns, `tagged` if it has tags (docs/integrity.md), which
    only files with encrypted columns have.
    """

    plain: tuple[str, ...]
    outdated: tuple[str, ...]
    tagged: bool = False
    encrypted: bool = False

    def __bool__(self) -> bool:
        return bool(self.plain or self.outdated)


@checked_arguments
@named_errors
def audit_file(
    source: Any, encrypt: Mapping[str, str], keys: KeyProvider | None = None, *, name: str | None = None
) -> Audit:
    """Compare a file's encryption with the required key name of each column; reads only the tail.

    `plain` are columns in the clear, from writers that ignore `orc.encrypt`. `outdated` are columns with
    another key or, with `keys`, with an older version of the key. A part of a column (`address.zip`) counts
    as encrypted if the column is. The result omits columns that the file lacks. `source` is as in
    `EncryptedOrcFile`. `keys` needs only to return current versions.
    """
    opened = open_source(source, name)
    try:
        tail = read_tail(opened)
    finally:
        opened.close()
    encryption = tail.footer.encryption
    keys_by_root = {variant.root: encryption.key[variant.key] for variant in encryption.variants}
    plain: list[str] = []
    outdated: list[str] = []
    for column, key_name in encrypt.items():
        number = find_column(tail.types, column)
        if number is None:
            continue
        key = _key_of(number, keys_by_root, tail.types)
        if key is None:
            plain.append(column)
        elif key.key_name != key_name or (keys and keys.current_key(key_name).version > key.key_version):
            outdated.append(column)
    return Audit(tuple(plain), tuple(outdated), find_header(tail) is not None, bool(keys_by_root))


def _key_of(number: int, keys_by_root: Mapping[int, proto.Message], types: TypeTree) -> proto.Message | None:
    """Return the key of a column or of one that contains it; None if neither is encrypted."""
    return next((key for root, key in keys_by_root.items() if root <= number <= types.last[root]), None)
