"""Keys in a Hadoop KMS and in tables, through Spark; and Spark's own client of the KMS as the judge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kms_stand_in import stand_in
from pyspark.sql import SparkSession

import lockgate
from lockgate import Lake
from lockgate.errors import MaskedDataWarning
from lockgate.framework.keys import EnvelopeKeyProvider, HadoopKmsKeyProvider, provider_from
from lockgate.framework.orc import EncryptedOrcFile, write_table

ENCRYPTED = "TBLPROPERTIES ('orc.encrypt' = 'pii:ssn;fin:salary')"


@pytest.fixture(scope="module")
def kms() -> Iterator[Any]:
    """A Hadoop KMS whose keys pii and fin are for alice, and open for everybody."""
    keys = {"pii": [os.urandom(16)], "fin": [os.urandom(32)], "open": [os.urandom(16), os.urandom(16)]}
    with stand_in().running(keys) as server:
        server.state.users = {"pii": {"alice"}, "fin": {"alice"}}
        yield server


@pytest.fixture
def fresh_orc(spark: SparkSession) -> Iterator[None]:
    """Let Spark's own ORC classes look for their key provider again; they keep the first one for ever."""
    jvm: Any = spark.sparkContext._jvm
    cache = jvm.java.lang.Class.forName("org.apache.orc.impl.CryptoUtils").getDeclaredField(
        "keyProviderCache"
    )
    cache.setAccessible(True)
    cache.get(None).clear()
    yield
    cache.get(None).clear()


def connect(lake: Lake, folder: Path, name: str, keys: str) -> Lake:
    return lockgate.connect(str(folder), spark=lake.spark, catalog=name, keys=keys)


def test_a_kms_holds_the_keys_of_a_catalog(lake: Lake, kms: Any, tmp_path: Path) -> None:
    """Written, rolled and read by Spark; for whom it is denied the columns are masks."""
    spark = lake.spark
    alice = connect(lake, tmp_path, "kms_alice", kms.spec("alice", cache=0))
    spark.sql("CREATE DATABASE kms_alice.db")
    spark.sql(f"CREATE TABLE kms_alice.db.t (id INT, ssn STRING, salary BIGINT) {ENCRYPTED}")
    spark.sql("INSERT INTO kms_alice.db.t VALUES (1, '123', 10), (2, '456', 20)")
    assert isinstance(alice.catalog.keys, HadoopKmsKeyProvider)
    kms.state.users["pii"].add("admin")
    provider_from(kms.spec("admin")).roll_key("pii")
    spark.sql("INSERT INTO kms_alice.db.t VALUES (3, '789', 30)")
    rows = [tuple(row) for row in spark.sql("SELECT * FROM kms_alice.db.t ORDER BY id").collect()]
    assert rows == [(1, "123", 10), (2, "456", 20), (3, "789", 30)]
    versions = set()
    for split in alice.catalog.load_table("db.t").scan().splits:
        for path in split.paths:
            with EncryptedOrcFile(path, alice.catalog.keys) as file:
                versions |= {str(variant.key) for variant in file.variants}
    assert versions == {"pii@0", "pii@1", "fin@0"}
    confs = spark.sparkContext.getConf().getAll() + [(key, value) for key, value in spark.conf.getAll.items()]
    assert not [value for _, value in confs if f":{kms.port}" in value], "no conf says where keys are"
    connect(lake, tmp_path, "kms_bob", kms.spec("bob"))
    with pytest.warns(MaskedDataWarning):
        masked = spark.sql("SELECT * FROM kms_bob.db.t ORDER BY id").collect()
    assert [tuple(row) for row in masked] == [(1, None, None), (2, None, None), (3, None, None)]


def test_a_table_brings_its_keys_wrapped(lake: Lake, kms: Any, tmp_path: Path) -> None:
    """The master key is made here, wrapped under a key of the KMS, and stored by SQL."""
    spark = lake.spark
    opened = connect(lake, tmp_path, "enveloped", f"envelope:fin@{kms.spec('alice')}")
    envelope = opened.catalog.keys
    assert isinstance(envelope, EnvelopeKeyProvider)
    text = envelope.create("own")
    spark.sql("CREATE DATABASE enveloped.db")
    spark.sql(
        "CREATE TABLE enveloped.db.t (id INT, ssn STRING) TBLPROPERTIES "
        f"('primary-key' = 'id', 'orc.encrypt' = 'own:ssn', 'orc.keys.wrapped' = '{text}')"
    )
    spark.sql("INSERT INTO enveloped.db.t VALUES (1, '123')")
    rolled = envelope.roll(text, "own")
    spark.sql(f"ALTER TABLE enveloped.db.t SET TBLPROPERTIES ('orc.keys.wrapped' = '{rolled}')")
    spark.sql("INSERT INTO enveloped.db.t VALUES (2, '456'), (3, '789')")
    spark.sql("DELETE FROM enveloped.db.t WHERE ssn = '789'")
    rows = [tuple(row) for row in spark.sql("SELECT * FROM enveloped.db.t ORDER BY id").collect()]
    assert rows == [(1, "123"), (2, "456")]
    keys = opened.catalog.load_table("db.t").keys
    assert keys is not None
    assert [str(key) for key in keys.key_versions()] == ["own@0", "own@1"]
    other = connect(lake, tmp_path, "unopened", f"envelope:fin@{kms.spec('bob')}")
    with pytest.warns(MaskedDataWarning):
        assert other.table("db.t").where("id = 1").collect()[0].ssn is None


def test_sparks_own_client_takes_the_stand_in_for_a_kms(
    spark: SparkSession, kms: Any, fresh_orc: None, tmp_path: Path
) -> None:
    """So what our provider is tested against is what Hadoop's client understands, in both directions."""
    user = spark.sparkContext.sparkUser()
    where = {"hadoop.security.key.provider.path": kms.uri}
    ours = provider_from(kms.spec(user))
    table = pa.table({"id": list(range(500)), "ssn": [f"{number:09d}" for number in range(500)]})
    (tmp_path / "ours").mkdir()
    write_table(table, str(tmp_path / "ours" / "people.orc"), encrypt="open:ssn", keys=ours)
    read = spark.read.options(**where).orc(str(tmp_path / "ours")).orderBy("id").toArrow()
    assert read.column("ssn").to_pylist() == table.column("ssn").to_pylist()
    options = {**where, "orc.encrypt": "open:ssn", "orc.mask": "nullify:ssn"}
    frame = spark.range(500).selectExpr("id", "format_string('%09d', id) AS ssn").coalesce(1)
    frame.write.options(**options).orc(str(tmp_path / "theirs"))
    (path,) = (tmp_path / "theirs").glob("*.orc")
    with EncryptedOrcFile(path, ours, strict=True) as file:
        assert str(file.variants[0].key) == "open@1"
        assert file.read().sort_by("id").column("ssn").to_pylist() == table.column("ssn").to_pylist()
