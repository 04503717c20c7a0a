"""Names of databases and tables."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError

_BRANCH = "$branch_"
# They become folder names; a `$` begins the name of a system table or of a branch.
_NAME = re.compile(r"[^\W]([\w-]*)")
# Tables on their way in or out, which no listing shows.
_HIDDEN = "__lockgate_"
_ON_ITS_WAY = re.compile(rf"{_HIDDEN}(staged|dropped)_[0-9a-f]{{32}}_(.+)", re.DOTALL)


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

    @property
    def is_hidden(self) -> bool:
        """Say whether it is a table that is being made or dropped, not to be listed."""
        return self.name.startswith(_HIDDEN)

    def staged(self) -> Identifier:
        """Return a new name under which what is to become this table can be made."""
        return self._on_its_way("staged")

    def dropped(self) -> Identifier:
        """Return a new name under which the table waits for its deletion."""
        return self._on_its_way("dropped")

    def _on_its_way(self, way: str) -> Identifier:
        return Identifier(self.namespace, f"{_HIDDEN}{way}_{uuid.uuid4().hex}_{self.name}")

    @property
    def staged_for(self) -> Identifier | None:
        """The table that a staged one is to become, None for any other table."""
        found = _ON_ITS_WAY.fullmatch(self.table)
        return Identifier(self.namespace, found[2]) if found and found[1] == "staged" else None

    @property
    def policy_name(self) -> str:
        """The name by which policies know the table: its own, also while it is being made or dropped."""
        found = _ON_ITS_WAY.fullmatch(self.table)
        return f"{self.namespace}.{found[2] if found else self.table}"

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
