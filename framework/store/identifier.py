"""Names of databases and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.errors import InputError

# They become folder names; a `$` begins the name of a system table.
_NAME = re.compile(r"[^\W]([\w-]*)")


@dataclass(frozen=True)
class Identifier:
    """A table's name in its database."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    @classmethod
    def parse(cls, text: str | Identifier) -> Identifier:
        """Read `database.table`; InputError if it is not of that form."""
        if isinstance(text, Identifier):
            return text
        parts = text.replace("`", "").split(".")
        if len(parts) != 2:
            raise InputError(f"a table is named 'database.table', not {text!r}")
        return cls(*parts)


def check_name(what: str, name: str) -> str:
    """Return `name`; InputError unless it consists of letters, digits, `_` and `-`."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the name of a {what}: use letters, digits, '_' and '-'")
    return name
