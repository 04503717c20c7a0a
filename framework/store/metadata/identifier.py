"""Names of databases and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError

_BRANCH = "$branch_"
# They become folder names; a `$` begins the name of a system table or of a branch.
_NAME = re.compile(r"[^\W]([\w-]*)")


@checked_arguments
@dataclass(frozen=True)
class Identifier:
    """The name of a table, or of a branch of it, in its database."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def table(self) -> str:
        """The name without a branch."""
        return self.name.partition(_BRANCH)[0]

    @property
    def branch(self) -> str | None:
        """The branch that `database.table$branch_<name>` names; None for the table itself."""
        return self.name.partition(_BRANCH)[2] or None

    @classmethod
    def parse(cls, text: str | Identifier) -> Identifier:
        """Read `database.table`; InputError if it is not of that form."""
        if isinstance(text, Identifier):
            return text
        parts = text.replace("`", "").split(".")
        if len(parts) != 2 or "\0" in text:
            raise InputError(f"a table is named 'database.table', not {text!r}")
        return cls(*parts)


def check_name(what: str, name: str) -> str:
    """Return `name`; InputError unless it consists of letters, digits, `_` and `-`."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the name of a {what}: use letters, digits, '_' and '-'")
    return name
