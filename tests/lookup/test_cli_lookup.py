"""The commands `lockgate lookup`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.cli import main
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.catalog import Catalog
from lockgate.framework.store.schema import Schema
from lockgate.lookup.directory import CacheDirectory
from lockgate.lookup.tables import open_lookup

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    catalog = Catalog(str(tmp_path / "warehouse"), keys=keys)
    catalog.create_namespace("db")
    for name, options in (("plain", {}), ("secret", {"orc.encrypt": "pii:name"})):
        given = Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1", **options})
        table = catalog.create_table(f"db.{name}", given)
        table.append(pa.table({"id": range(5), "name": list("abcde")}, schema=SCHEMA))
        open_lookup(table, "id", options={"lookup.cache-dir": str(tmp_path / "cache")}).close()
    return tmp_path / "cache"


def test_status(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lookup", "status", str(caches), "--json"]) == 0
    plain, secret = map(json.loads, capsys.readouterr().out.splitlines())
    assert (plain["rows"], plain["current"], plain["snapshots"]) == (5, 1, [1])
    assert (plain["encrypted_under"], secret["encrypted_under"]) == ([], ["pii@0"])
    assert secret["bytes"] > 0
    assert main(["lookup", "status", secret["directory"]]) == 0
    shown = capsys.readouterr().out
    assert "primary-key, name; snapshot 1, 5 rows" in shown
    assert "encrypted under pii@0; no owner" in shown


def test_rebuild_and_drop(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (secret,) = caches.glob("db.secret-*")
    assert main(["lookup", "rebuild", str(secret)]) == 0
    assert "will be built again" in capsys.readouterr().out
    assert not secret.exists()
    (plain,) = caches.glob("db.*")
    lock = CacheDirectory(plain).try_lock()
    assert lock is not None
    with lock:
        assert main(["lookup", "drop", str(caches)]) == 1
        assert "an owner is running" in capsys.readouterr().err
        assert plain.exists()
        assert main(["lookup", "drop", str(caches), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["directory"] == str(plain)
    assert list(caches.glob("db.*")) == []
    assert main(["lookup", "drop", str(caches)]) == 1
    assert "there is no lookup cache" in capsys.readouterr().err
