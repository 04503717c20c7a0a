"""A warehouse without Spark, and a way to call procedures on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog
from lockgate.procedures import ProcedureContext, ProcedureResult, call

KEYS = {"pii@0": bytes(range(16)), "other@0": bytes(range(16, 32))}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A warehouse with the keys `pii` and `other` and the database `db`."""
    made = Catalog(tmp_path / "warehouse", keys=MemoryKeyProvider(KEYS))
    made.create_namespace("db")
    return made


@pytest.fixture
def keyless(catalog: Catalog, tmp_path: Path) -> Catalog:
    """The same warehouse for someone without keys."""
    return Catalog(tmp_path / "warehouse")


@pytest.fixture
def run(catalog: Catalog) -> Callable[..., ProcedureResult]:
    """Call a procedure on the warehouse: `run("compact", table="db.t")`."""

    def call_it(name: str, *positional: Any, within: Catalog | None = None, **named: Any) -> ProcedureResult:
        return call(ProcedureContext(within or catalog), name, *positional, **named)

    return call_it


@pytest.fixture
def digest() -> Callable[[str | Path], str]:
    """The hash of all names and contents below a folder."""

    def of(folder: str | Path) -> str:
        state = hashlib.sha256()
        for path in sorted(Path(folder).rglob("*")):
            state.update(str(path.relative_to(folder)).encode())
            if path.is_file():
                state.update(path.read_bytes())
        return state.hexdigest()

    return of
