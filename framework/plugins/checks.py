"""Checks of what hooks answer: each returns the answer in one form, or raises TypeError or ValueError.

The manager adds to the message which plugin answered it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate.framework.plugins.contracts import CommitParticipant, SystemTable

_APACHE_MASKS = frozenset({"nullify", "redact", "sha256"})


def by_procedure_name(answer: object) -> dict[str, Any]:
    """Return procedures by their names."""
    if not isinstance(answer, list | tuple):
        raise TypeError(f"a list of procedures is wanted, not {type(answer).__name__}")
    procedures: dict[str, Any] = {}
    for procedure in answer:
        name = getattr(procedure, "name", None)
        is_instance = not isinstance(procedure, type) and callable(getattr(procedure, "call", None))
        if not isinstance(name, str) or not is_instance:
            raise TypeError(f"{procedure!r} is not an instance of lockgate.procedures.Procedure")
        if name in procedures:
            raise ValueError(f"procedure {name!r} is listed twice")
        procedures[name] = procedure
    return procedures


def _mapping(answer: object) -> dict[str, Any]:
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        raise TypeError(f"a mapping of names is wanted, not {type(answer).__name__}")
    return dict(answer)


def callables(answer: object) -> dict[str, Any]:
    """Return things that can be called by their names."""
    values = _mapping(answer)
    for name, value in values.items():
        if not callable(value):
            raise TypeError(f"{name!r} is mapped to {type(value).__name__}, which cannot be called")
    return values


def masks(answer: object) -> dict[str, Any]:
    """Return factories of masks by their names."""
    values = callables(answer)
    taken = sorted(_APACHE_MASKS & set(values))
    if taken:
        raise ValueError(
            f"{taken[0]!r} is a mask of Apache ORC itself and means the same everywhere; rename it"
        )
    return values


def system_tables(answer: object) -> dict[str, Any]:
    """Return system tables by their suffixes."""
    values = _mapping(answer)
    for name, value in values.items():
        if isinstance(value, type) or not isinstance(value, SystemTable):
            raise TypeError(f"{name!r} is mapped to {value!r}, which lacks schema() or rows()")
    return values


def participants(answer: object) -> list[CommitParticipant]:
    """Return the participants of a commit."""
    if not isinstance(answer, list | tuple):
        raise TypeError(f"a list of participants is wanted, not {type(answer).__name__}")
    for each in answer:
        if isinstance(each, type) or not isinstance(each, CommitParticipant):
            raise TypeError(f"{each!r} lacks prepare(), committed() or aborted()")
    return list(answer)
