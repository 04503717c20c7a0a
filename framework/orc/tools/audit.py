"""Audit of a file: the columns that are not encrypted as a table's options say."""

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
    """Columns that are not encrypted as they should be; `plain` and `outdated` are empty if all are.

    `encrypted` says whether the file has any encrypted column, `tagged` whether it has tags
    (docs/integrity.md); only files with encrypted columns do.
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
    """Compare a file with the key name that each column should be encrypted with; reads the tail only.

    `plain` are columns stored in the clear, as by writers that ignore `orc.encrypt`. `outdated` are columns
    under another key, or, with `keys`, under an older version than the current; a part of a column
    (`address.zip`) counts as encrypted if the whole is. The result omits columns that the file lacks.
    `source` is what `EncryptedOrcFile` takes. `keys` only has to know current versions.
    """
    opened = open_source(source, name)
    try:
        tail = read_tail(opened)
    finally:
        opened.close()
    encryption = tail.footer.encryption
    held = {variant.root: encryption.key[variant.key] for variant in encryption.variants}
    plain: list[str] = []
    outdated: list[str] = []
    for column, key_name in encrypt.items():
        number = find_column(tail.types, column)
        if number is None:
            continue
        key = _key_of(number, held, tail.types)
        if key is None:
            plain.append(column)
        elif key.key_name != key_name or (keys and keys.current_key(key_name).version > key.key_version):
            outdated.append(column)
    return Audit(tuple(plain), tuple(outdated), find_header(tail) is not None, bool(held))


def _key_of(number: int, held: Mapping[int, proto.Message], types: TypeTree) -> proto.Message | None:
    """Return the key of the column or of what it is in: more than was wanted may be encrypted, but not
    less.
    """
    return next((key for root, key in held.items() if root <= number <= types.last[root]), None)
