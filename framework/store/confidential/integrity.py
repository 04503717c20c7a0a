"""Checking of a table's data files by their tags: the option `orc.integrity`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Literal

from lockgate.errors import IntegrityError
from lockgate.framework.options import ORC_ENCRYPT, ORC_INTEGRITY
from lockgate.framework.orc import EncryptedOrcFile, parse_encrypt

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema

Mode = Literal["require", "verify", "ignore"]


class IntegrityPolicy:
    """Decides for the files of one table; asks its key provider at most once for each key.

    The reader gets none of the `withheld` keys.
    """

    def __init__(self, table: TableHandle, withheld: Collection[str] = ()) -> None:
        self._table, self._withheld = table, frozenset(withheld)
        self._usable: dict[str, bool] = {}

    def mode(self, schema: TableSchema) -> Mode:
        """Return how files written under `schema` are checked.

        "require" only where one of the keys that the schema names can be used here: such a file can be
        checked, so one that cannot was tampered with. A reader without the key sees masks, which nobody can
        check.
        """
        mode = str(self._table.options.get_option(ORC_INTEGRITY))
        if mode == "ignore":
            return "ignore"
        names = set(parse_encrypt(schema.table_options.get_option(ORC_ENCRYPT)).values())
        return "require" if mode == "require" and any(map(self._can_use, sorted(names))) else "verify"

    def mode_of_all(self, schemas: Iterable[TableSchema]) -> Mode:
        """Return one mode for files of several schemas: "require" if every schema that encrypts wants it."""
        modes = {
            self.mode(schema) for schema in schemas if schema.table_options.get_option(ORC_ENCRYPT).strip()
        }
        if len(modes) == 1:
            return modes.pop()
        return "verify" if modes else self.mode(self._table.schema)

    def check(self, file: EncryptedOrcFile, schema: TableSchema) -> None:
        """Raise `IntegrityError` for a file written under `schema` that is encrypted, but cannot be checked.

        Files without encryption, as writers that ignore `orc.encrypt` leave them, have no tags.
        """
        if not file.variants or file.integrity in ("verified", "ignored") or self.mode(schema) != "require":
            return
        why = "it has no tags" if file.integrity == "absent" else "none of the keys it names is held"
        raise IntegrityError(
            f"{file.name} cannot be checked, as table {self._table.identifier} requires by its option "
            f"'orc.integrity': {why}. If it comes from a writer without tags, set the option to 'verify'; "
            "otherwise restore the file from a copy"
        )

    def _can_use(self, name: str) -> bool:
        if name not in self._usable:
            keys = self._table.keys
            self._usable[name] = keys is not None and name not in self._withheld and keys.usable(name)
        return self._usable[name]
