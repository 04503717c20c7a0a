"""Keys of one JVM: two catalogs with equal names of keys, and keys that are rolled while queries run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lockgate
from lockgate.errors import WrongKeyError
from lockgate.framework.keys import add_key_version, create_key_file
from lockgate.framework.orc import EncryptedOrcFile

if TYPE_CHECKING:
    from lockgate import Lake

Named = Callable[[str], str]

OPTIONS = "TBLPROPERTIES ('orc.encrypt' = 'pii:ssn', 'orc.mask' = 'nullify:ssn')"


def _connect(lake: Lake, folder: Path, name: str, keys: Path) -> Lake:
    return lockgate.connect(str(folder / name), spark=lake.spark, catalog=name, keys=f"file:{keys}")


def _versions(lake: Lake, name: str) -> set[str]:
    table = lake.catalog.load_table(name)
    found = set()
    for split in table.scan().splits:
        for path in split.paths:
            with EncryptedOrcFile(path, lake.catalog.keys) as file:
                found |= {str(variant.key) for variant in file.variants}
    return found


def test_equal_names_of_keys_mean_each_catalog_s_own(lake: Lake, tmp_path: Path) -> None:
    """Written and read by turns, joined in one query, in one JVM whose ORC keeps key providers for ever."""
    spark = lake.spark
    lakes = {}
    for name in ("north", "south"):
        create_key_file(tmp_path / f"{name}.json", ["pii"])
        lakes[name] = _connect(lake, tmp_path, name, tmp_path / f"{name}.json")
        spark.sql(f"CREATE DATABASE {name}.db")
        spark.sql(f"CREATE TABLE {name}.db.t (id INT, ssn STRING) {OPTIONS}")
    for turn in range(2):
        for name in lakes:
            spark.sql(f"INSERT INTO {name}.db.t VALUES ({turn}, '{name}-{turn}')")
    for name in lakes:
        rows = sorted(map(tuple, spark.table(f"{name}.db.t").collect()))
        assert rows == [(0, f"{name}-0"), (1, f"{name}-1")]
    joined = spark.sql(
        "SELECT n.ssn, s.ssn FROM north.db.t n JOIN south.db.t s ON n.id = s.id "
        "WHERE n.ssn > 'n' AND s.ssn > 's' ORDER BY n.id"
    )
    assert list(map(tuple, joined.collect())) == [("north-0", "south-0"), ("north-1", "south-1")]
    spark.sql("INSERT INTO south.db.t SELECT id + 10, ssn FROM north.db.t")
    assert spark.sql("SELECT max(ssn) FROM south.db.t WHERE id >= 10").collect() == [("north-1",)]
    path = lakes["north"].catalog.load_table("db.t").scan().splits[0].paths[0]
    with pytest.raises(WrongKeyError):
        EncryptedOrcFile(path, lakes["south"].catalog.keys)
    # The other's folder under this one's keys: refused before a row is decoded.
    mixed = lockgate.connect(
        str(tmp_path / "north"), spark=spark, catalog="mixed", keys=f"file:{tmp_path / 'south.json'}"
    )
    with pytest.raises(Exception, match="WrongKeyError"):
        mixed.table("db.t").collect()


def test_a_key_rolled_while_a_session_runs(lake: Lake, tmp_path: Path) -> None:
    """The key file is replaced on disk: new files have the new version, old ones stay readable."""
    spark = lake.spark
    keys = tmp_path / "rolled.json"
    create_key_file(keys, ["pii"])
    rolled = _connect(lake, tmp_path, "rolled", keys)
    spark.sql("CREATE DATABASE rolled.db")
    spark.sql(f"CREATE TABLE rolled.db.t (id INT, ssn STRING) {OPTIONS}")
    spark.sql("INSERT INTO rolled.db.t VALUES (0, 'first')")
    frame = spark.table("rolled.db.t").where("ssn IS NOT NULL")
    assert frame.count() == 1
    assert _versions(rolled, "db.t") == {"pii@0"}
    add_key_version(keys, "pii", bits=256)
    spark.sql("INSERT INTO rolled.db.t VALUES (1, 'second')")
    assert _versions(rolled, "db.t") == {"pii@0", "pii@1"}
    assert sorted(map(tuple, spark.table("rolled.db.t").collect())) == [(0, "first"), (1, "second")]
    spark.sql("INSERT OVERWRITE rolled.db.t SELECT * FROM rolled.db.t")
    assert _versions(rolled, "db.t") == {"pii@1"}
    assert sorted(map(tuple, spark.table("rolled.db.t").collect())) == [(0, "first"), (1, "second")]


def test_a_key_rolled_while_a_job_runs(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some files of one write are under the old version, some under the new: all of them are readable."""
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import key_operations

    spark = lake.spark
    keys = tmp_path / "midway.json"
    create_key_file(keys, ["pii"])
    midway = _connect(lake, tmp_path, "midway", keys)
    spark.sql("CREATE DATABASE midway.db")
    spark.sql(f"CREATE TABLE midway.db.t (id BIGINT, ssn STRING) {OPTIONS}")
    asked: list[object] = []

    def create(context: object, request: dict[str, object]) -> object:
        asked.append(request)
        if len(asked) == 4:
            add_key_version(keys, "pii")
        return key_operations.OPERATIONS["keys.create"](context, request)  # type: ignore[arg-type]  # a request of its message

    monkeypatch.setitem(dispatcher._OWN, "keys.create", create)
    rows = spark.range(0, 60, 1, 6).selectExpr("id", "concat('s', id) AS ssn")
    rows.writeTo("midway.db.t").append()
    assert _versions(midway, "db.t") == {"pii@0", "pii@1"}
    found = sorted(map(tuple, spark.table("midway.db.t").where("ssn IS NOT NULL").collect()))
    assert found == [(i, f"s{i}") for i in range(60)]
