"""Grants: decisions about tables that Spark reads under row filters and masks, each with a token.

A plan that has the row filter and the masks reads stored rows, and needs a grant to do so. A grant is for one
principal, one table and some columns, and ends when the decision changes.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from lockgate.framework.access import Principal, SqlDecision, Target

_MOST = 10_000


@dataclass(frozen=True)
class ScanGrant:
    """A right to read stored rows of the table at `location`: the columns `readable`, of these `types`.

    `session` names the one that plans by it. `policy_names` maps columns to the names that policies know them
    by, where they had others in the past. `of_policy`: a row filter reads the table, and no query.
    """

    principal: Principal
    name: str
    location: str
    table_id: str
    types: Mapping[str, str] = field(hash=False)
    policy_names: Mapping[str, str] = field(hash=False)
    decision: SqlDecision
    readable: frozenset[str]
    session: str | None = None
    of_policy: bool = False


@dataclass(frozen=True)
class ScanRights:
    """What was decided when a scan was planned; each key of its files is decided about again.

    `types` are those of the columns of `target` by the names that policies know; `columns` maps each key to
    the columns that need it.
    """

    target: Target
    types: Mapping[str, str] = field(hash=False)
    decision: SqlDecision
    columns: Mapping[str, frozenset[str]] = field(hash=False)

    def hides_more(self, key: str, now: SqlDecision) -> bool:
        """Tell whether a decision of now hides rows, or values under a key, that were shown before."""
        before = self.decision
        if now.apply_for or now.row_filter not in (None, before.row_filter):
            return True
        return any(
            column in now.denied or now.masks.get(column, None) not in (None, before.masks.get(column))
            for column in self.columns.get(key, frozenset())
        )


class Grants:
    """The grants of this process: those unused for longest are forgotten; their plans must be made again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_token: OrderedDict[str, ScanGrant] = OrderedDict()
        self._tokens: dict[ScanGrant, str] = {}

    def token(self, grant: ScanGrant) -> str:
        """Return a token of a grant that nobody can guess, the same every time: plans compare by it."""
        with self._lock:
            token = self._tokens.setdefault(grant, secrets.token_hex(16))
            self._by_token[token] = grant
            self._by_token.move_to_end(token)
            while len(self._by_token) > _MOST:
                del self._tokens[self._by_token.popitem(last=False)[1]]
            return token

    def find(self, token: object) -> ScanGrant | None:
        """Return the grant of a token, None if there is none."""
        with self._lock:
            if not isinstance(token, str) or token not in self._by_token:
                return None
            self._by_token.move_to_end(token)
            return self._by_token[token]
