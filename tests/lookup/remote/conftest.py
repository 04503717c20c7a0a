"""A secret, and services in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lookup_world import World
from service_world import BYTES, Serve

from lockgate.framework.store.tables.table import Table
from lockgate.lookup.driver import query_services
from lockgate.lookup.remote.certificate import make_certificate
from lockgate.lookup.remote.query_server import QueryService
from lockgate.lookup.remote.registration import Registration
from lockgate.lookup.remote.secret import VARIABLE, Secret


@pytest.fixture(autouse=True)
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "query-service.secret"
    path.write_bytes(BYTES)
    path.chmod(0o600)
    monkeypatch.setenv(VARIABLE, str(path))
    yield path
    query_services.close_all()


@pytest.fixture
def serve(world: World) -> Iterator[Serve]:
    """Serve a table in this process; a process of its own takes a second to start."""
    services: list[QueryService] = []

    def started(table: Table) -> Registration:
        made = make_certificate()
        token = Secret(BYTES).token(made.certificate)
        services.append(
            QueryService(lambda: world.catalog.load_table(table.identifier), "127.0.0.1:0", token, made)
        )
        known = Registration(f"127.0.0.1:{services[-1].port}", made.certificate, "own")
        known.write(table, Secret(BYTES))
        return known

    yield started
    for service in services:
        service.shutdown()
