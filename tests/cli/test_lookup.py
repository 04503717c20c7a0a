"""The commands `lockgate lookup`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.cli.main import main
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.driver.service import Lookup

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


def test_status_shows_each_cache(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lookup", "status", str(caches), "--json"]) == 0
    plain, secret = map(json.loads, capsys.readouterr().out.splitlines())
    assert (plain["rows"], plain["current"], plain["snapshots"]) == (5, 1, [1])
    assert (plain["encrypted_under"], secret["encrypted_under"]) == ([], ["pii@0"])
    assert secret["bytes"] > 0
    assert main(["lookup", "status", secret["directory"]]) == 0
    shown = capsys.readouterr().out
    assert "primary-key, name; snapshot 1, 5 rows, built in 0." in shown
    assert (plain["lookups"], plain["built_millis"] > 0, plain["build_seconds"] > 0) == ([], True, True)
    assert "encrypted under pii@0; no owner" in shown


def test_a_damaged_cache_stands_in_nobodys_way(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, secret = sorted(path for path in caches.iterdir() if (path / "LAYOUT.json").exists())
    layout = (plain / "LAYOUT.json").read_text()
    for text, named in (
        (layout[:50], "is damaged"),
        ("{}", "has format None"),
        (layout.replace("kind", "x"), "KeyError"),
    ):
        (plain / "LAYOUT.json").write_text(text)
        assert main(["lookup", "status", str(caches), "--json"]) == 0
        first, second = map(json.loads, capsys.readouterr().out.splitlines())
        assert named in first["problem"]
        assert (second["problem"], second["rows"]) == (None, 5)
        assert main(["lookup", "status", str(caches)]) == 0
        assert f"{plain}: " in capsys.readouterr().out
    (secret / "KEYS.json").write_text('{"check": ""}')
    assert main(["lookup", "status", str(secret)]) == 0
    assert f"{secret} is damaged" in capsys.readouterr().out
    assert main(["lookup", "drop", str(caches)]) == 0
    assert not plain.exists()
    assert not secret.exists()


def test_status_of_running_lookups(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = Catalog(str(caches.parent / "warehouse"))
    table = catalog.load_table("db.plain")
    spec = make_spec(
        table, "id", options={"lookup.cache-dir": str(caches), "lookup.refresh.interval": "50 ms"}
    )
    lookup = Lookup(catalog, table, spec)

    def shown() -> dict[str, Any]:
        assert main(["lookup", "status", str(lookup.directory.path), "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    def until(condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while not condition(found := shown()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    try:
        assert lookup.pin("query", 0) == 1
        lookup.note_answers(200, 150)
        (running,) = until(lambda found: any(each["asked_rows"] for each in found["lookups"]))["lookups"]
        assert (running["table"], running["keys"]) == ("db.plain", ["id"])
        assert (running["asked_rows"], running["hit_rows"], running["hit_rate"]) == (200, 150, 0.75)
        assert (running["served_snapshot"], running["target_snapshot"], running["lag_millis"]) == (1, 1, 0)
        assert 0 <= running["seconds_since_report"] < 60
        assert main(["lookup", "status", str(lookup.directory.path)]) == 0
        text = capsys.readouterr().out
        assert (
            "owner running\n    db.plain by id: snapshot 1, 0 ms behind 1, 200 rows asked for, 75.0%" in text
        )
        # A refresh that fails shows as well, with how far the state is behind.
        table.append(pa.table({"id": [9], "name": ["z"]}, schema=SCHEMA))
        for path in Path(table.location).glob("bucket-0/*"):
            path.write_bytes(b"broken")
        failed = until(lambda found: found["lookups"][0]["failures"] > 0)["lookups"][0]
        assert (failed["served_snapshot"], failed["target_snapshot"]) == (1, 2)
        assert failed["lag_millis"] > 0
        assert "not a valid ORC file" in failed["last_error"]
    finally:
        lookup.close()
    assert shown()["lookups"] == []


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
