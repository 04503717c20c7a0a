"""The requests of a warehouse's users, in a folder that only the user of this process can enter.

Those who ask are not trusted: a text is short and of one line, and one user fills no disk and no list.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, ProcedureError
from lockgate.framework.io import make_private_folder, named_errors, open_private_file

MOST_OPEN, MOST_OF_USER, MOST_KEPT = 1_000, 20, 5_000
LONGEST_REASON, LONGEST_NAME, MOST_COLUMNS = 500, 255, 200
State = Literal["open", "granted", "refused"]


@dataclass(frozen=True)
class AccessAsked:
    """A request of `user` for access types on a table, or on some of its columns; times in milliseconds.

    Raises InputError for one that is longer than a person reads.
    """

    id: str
    user: str
    table: str
    columns: tuple[str, ...]
    accesses: tuple[str, ...]
    reason: str
    asked_millis: int
    state: State = "open"
    decided_by: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "accesses", tuple(self.accesses))
        object.__setattr__(self, "reason", _one_line(self.reason))
        if len(self.reason) > LONGEST_REASON:
            raise InputError(f"a reason has at most {LONGEST_REASON} characters, not {len(self.reason)}")
        if len(self.columns) > MOST_COLUMNS:
            raise InputError(f"a request names at most {MOST_COLUMNS} columns: ask for the whole table")
        for name in (self.user, self.table, *self.columns):
            if not name or len(name) > LONGEST_NAME or name != _one_line(name):
                raise InputError(f"a name has 1 to {LONGEST_NAME} characters, and no line breaks")


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


@checked_arguments
class RequestFolder:
    """Requests as files of a folder, one each; processes of one user may share it."""

    @named_errors
    def __init__(self, path: str | Path) -> None:
        """Make the folder, closed to others; UnsafePathError if it is another user's."""
        self._path = make_private_folder(Path(path))
        self._lock = threading.Lock()

    def all(self) -> list[AccessAsked]:
        """Return the requests, oldest first; what is no request is left out."""
        found = (_read(path) for path in sorted(self._path.glob("*.json")))
        return sorted((each for each in found if each is not None), key=lambda each: each.asked_millis)

    def ask(
        self, user: str, table: str, columns: tuple[str, ...], accesses: tuple[str, ...], reason: str
    ) -> AccessAsked:
        """Keep a request, and return it; one that is open already is returned as it is.

        Raises ProcedureError if this user, or all together, have too many open ones.
        """
        made = AccessAsked(
            uuid.uuid4().hex, user, table, columns, accesses, reason, time.time_ns() // 1_000_000
        )
        with self._alone():
            there = self.all()
            open_ones = [each for each in there if each.state == "open"]
            for each in open_ones:
                if _same(each, made):
                    return each
            if sum(each.user == user for each in open_ones) >= MOST_OF_USER:
                raise ProcedureError(
                    f"user {user!r} has {MOST_OF_USER} open requests: wait until they are decided"
                )
            if len(open_ones) >= MOST_OPEN:
                raise ProcedureError(
                    f"there are {MOST_OPEN} open requests: ask those who grant to decide some"
                )
            for old in [each for each in there if each.state != "open"][: len(there) + 1 - MOST_KEPT]:
                (self._path / f"{old.id}.json").unlink(missing_ok=True)
            self._write(made)
        return made

    def decide(self, table: str, user: str, columns: tuple[str, ...], state: State, by: str) -> int:
        """Mark a user's open requests on a table as decided, if all of their columns are; return how many.

        Without `columns` it is the whole table that was decided about.
        """
        with self._alone():
            decided = [
                each
                for each in self.all()
                if (each.state, each.table, each.user) == ("open", table, user)
                and (not columns or (each.columns and set(each.columns) <= set(columns)))
            ]
            for each in decided:
                self._write(replace(each, state=state, decided_by=by))
        return len(decided)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:
            number = open_private_file(self._path / "lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(number, fcntl.LOCK_EX)
                yield
            finally:
                os.close(number)

    def _write(self, request: AccessAsked) -> None:
        path = self._path / f"{request.id}.json"
        fresh = path.with_suffix(".new")
        number = open_private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(number, "w") as file:
            json.dump(asdict(request), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def _same(one: AccessAsked, other: AccessAsked) -> bool:
    return (one.user, one.table, one.columns, one.accesses) == (
        other.user,
        other.table,
        other.columns,
        other.accesses,
    )


def _read(path: Path) -> AccessAsked | None:
    try:
        return AccessAsked(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, InputError):
        return None
