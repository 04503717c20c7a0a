"""Bad input says what was wrong and offers the nearest names, as a clean AnalysisException."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from messages import question
from pyspark.errors import AnalysisException
from pyspark.sql import functions

import lockgate
from lockgate.errors import BridgeError, InputError, LockgateError, NotFoundError, OptionError
from lockgate.framework.spark.bridge.dispatcher import Dispatcher, dispatcher
from lockgate.framework.spark.context.open_catalogs import Catalogs, KeyScopes
from lockgate.framework.spark.context.operation_context import OperationContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

HOSTILE = [
    *(
        "",
        " ",
        "..",
        "../x",
        "a/b",
        "\0",
        "\u202e",
        "表.格",
        "x" * 3000,
        "$",
        "t$",
        "t$x",
        "t$branch_",
        "%s",
        "'",
    ),
    *("sys", "${env:HOME}"),
]


def message_of(spark: SparkSession, statement: str) -> str:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement).collect()
    text = str(raised.value)
    assert "Traceback" not in text
    assert "at io.lockgate" not in text
    return text


def test_statistics_of_a_whole_database_are_refused_by_name(spark: SparkSession, database: str) -> None:
    message = message_of(spark, f"ANALYZE TABLES IN lake.{database} COMPUTE STATISTICS")
    assert "ANALYZE TABLES is not supported in catalog lake" in message
    spark.sql("ANALYZE TABLES IN spark_catalog.default COMPUTE STATISTICS")


def test_unknown_table(spark: SparkSession, table: Named) -> None:
    spark.sql(f"CREATE TABLE {table('planes')} (tailnum STRING)")
    for statement in (
        f"SELECT * FROM {table('plane')}",
        f"INSERT INTO {table('plane')} VALUES ('x')",
        f"DELETE FROM {table('plane')}",
        f"DESCRIBE {table('plane')}",
    ):
        wanted = table("planes").removeprefix("lake.")
        assert f"did you mean '{wanted}'" in message_of(spark, statement), statement


def test_unknown_database(spark: SparkSession, database: str) -> None:
    assert f"did you mean '{database}'" in message_of(spark, f"SELECT * FROM lake.{database}x.t")
    assert "SCHEMA_NOT_FOUND" in message_of(spark, f"SHOW TABLES IN lake.{database}x")


def test_unknown_column(spark: SparkSession, table: Named) -> None:
    spark.sql(f"CREATE TABLE {table('planes')} (tailnum STRING)")
    assert "`tailnum`" in message_of(spark, f"SELECT tailnumb FROM {table('planes')}")


def test_what_is_not_supported_names_the_alternative(spark: SparkSession, table: Named) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id INT)")
    assert "SET DEFAULT" in message_of(spark, f"ALTER TABLE {table('t')} ADD COLUMN x INT DEFAULT 5")
    buckets = f"CREATE TABLE {table('u')} (id INT) PARTITIONED BY (bucket(4, id))"
    assert "'bucket-key'" in message_of(spark, buckets)


def test_a_corrupt_manifest_is_named(spark: SparkSession, lake: Lake, table: Named, database: str) -> None:
    from pathlib import Path

    spark.range(3).writeTo(table("t")).create()
    location = Path(lake.catalog.load_table(f"{database}.t").location)
    for manifest in (location / "manifest").iterdir():
        manifest.write_bytes(manifest.read_bytes()[:40])
    assert "manifest" in message_of(spark, f"SELECT * FROM {table('t')}")


def test_catalog_confs(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.bad", "io.lockgate.spark.LockgateCatalog")
    assert "spark.sql.catalog.bad.warehouse" in message_of(session, "SHOW DATABASES IN bad")
    session.conf.set("spark.sql.catalog.bad.warehouse", "/tmp/none")
    session.conf.set("spark.sql.catalog.bad.kyes", "x")
    assert "did you mean 'keys'" in message_of(session, "SHOW DATABASES IN bad")


def test_a_setting_that_nobody_reads(spark: SparkSession, lake: Lake) -> None:
    session = spark.newSession()
    assert "did you mean spark.lockgate.governed" in message_of(session, "SET spark.lockgate.governned=true")
    found = message_of(session, "SET spark.lockgate.pasword=hunter2")
    assert "there is no setting spark.lockgate.pasword" in found
    assert "hunter2" not in found
    session.conf.set("spark.lockgate.lineag", "off")
    assert "did you mean spark.lockgate.lineage" in message_of(session, "SELECT 1")
    session.conf.set("spark.lockgate.lineag", "hunter2")
    assert "hunter2" not in message_of(session, "SELECT 1")
    session.sql("RESET spark.lockgate.lineag")
    assert session.sql("SELECT 1").first() == (1,)
    assert {"lookup_join", "lineage", "sql"} <= {*dir(lake)}


def test_connect_refuses_another_warehouse_under_a_name_in_use(lake: Lake, lake_folder: object) -> None:
    import lockgate

    before = lake.spark.conf.get("spark.sql.catalog.lake.warehouse")
    assert before is not None
    with pytest.raises(InputError, match="choose another name"):
        lockgate.connect(f"{lake_folder}/other", spark=lake.spark)
    assert lake.spark.conf.get("spark.sql.catalog.lake.warehouse") == before
    with pytest.raises(InputError, match="plain word"):
        lockgate.connect(f"{lake_folder}/other", spark=lake.spark, catalog="a.b")
    with pytest.raises(InputError, match="runs already"):
        lockgate.connect(f"{lake_folder}/other", spark=lake.spark, catalog="b", master="local[7]")


def test_the_dispatcher_answers_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dispatcher()

    def asked(operation: str) -> bytes:
        return made.reply(json.dumps(question(operation, {})).encode())

    assert b'"BridgeError"' in asked("no.such")
    assert b"did you mean 'table.load'" in asked("table.lod")
    assert b"'table.load' is not as declared: catalog is missing" in asked("table.load")
    nameless = json.dumps({**question("table.load", {}), "user": None}).encode()
    for nonsense in (
        b"",
        b"not json",
        b"\xff",
        b"[]",
        b'{"operation": "table.load"}',
        b'{"request": {}}',
        nameless,
    ):
        assert b'"BridgeError"' in made.reply(nonsense)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(made, "_handler", stop)
    assert b"interrupted" in asked("table.load")


def test_unknown_handles_say_to_connect_again() -> None:
    scopes = KeyScopes()
    catalogs = Catalogs(scopes)
    with pytest.raises(OptionError, match="warehouse"):
        catalogs.open("lake", {})
    with pytest.raises(NotFoundError, match="nothing"):
        catalogs.get("nothing")
    with pytest.raises(NotFoundError, match="connect again"):
        scopes.provider("keys-9")
    with pytest.raises(BridgeError, match="attach"):
        OperationContext(Dispatcher(), {}).spark  # noqa: B018 - asking is the test
    assert dispatcher() is dispatcher()


def test_the_repr_of_a_lake_names_its_key_file(lake: Lake) -> None:
    text = repr(lake)
    assert text.startswith("Lake('lake', ")
    assert "keys.json" in text


def escaped(function: Callable[[], object]) -> str | None:
    """Return the error that leaves a door and is neither Lockgate's nor Spark's AnalysisException."""
    try:
        function()
    except (LockgateError, AnalysisException):
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None


def test_hostile_names_in_sql(spark: SparkSession, database: str, table: Named) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id INT, p STRING) PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {table('t')} VALUES (1, 'a')")
    found = []
    for name in HOSTILE:
        quoted, text = f"`{name}`", f'"{name}"'
        for statement in (
            f"SELECT * FROM lake.{database}.{quoted}",
            f"SELECT * FROM lake.{quoted}.t",
            f"SELECT {quoted} FROM {table('t')}",
            f"CREATE TABLE lake.{database}.{quoted} (id INT) TBLPROPERTIES ({text} = 'x')",
            f"ALTER TABLE {table('t')} SET TBLPROPERTIES ('bucket' = {text})",
            f"SELECT * FROM {table('t')} VERSION AS OF {text}",
            f"SELECT * FROM {table('t')} WHERE p = {text}",
            f"CALL lake.sys.{quoted}('x')",
            f"CALL lake.sys.compact(table => {text})",
            f"CALL lake.sys.create_tag(table => '{database}.t', tag => {text})",
        ):
            error = escaped(lambda statement=statement: spark.sql(statement).collect())
            if error is not None:
                found.append(f"{statement[:120]!r}: {error}")
    assert found == []
    assert spark.sql(f"SELECT id FROM {table('t')}").collect() == [(1,)]


def test_hostile_arguments_of_the_lake(
    lake: Lake, spark: SparkSession, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    lake.sql(f"CREATE TABLE lake.{database}.t (id INT)")
    frame = spark.range(1).withColumn("k", functions.lit(1))
    values: list[Any] = [
        None,
        7,
        True,
        b"x",
        [],
        {"a": 1},
        {"a": object()},
        [object()],
        object(),
        "",
        "..",
        "\0",
        "表",
    ]
    doors: dict[str, Callable[[Any], object]] = {
        "sql": lake.sql,
        "table": lake.table,
        "call": lake.call,
        "call of a table": lambda value: lake.call("compact", table=value),
        "read_orc": lake.read_orc,
        "inspect_sql": lake.inspect_sql,
        "explain_pushdown": lake.explain_pushdown,
        "lookup_join": lambda value: lockgate.lookup_join(frame, value, on=["id"]),
        "lookup_join on": lambda value: lockgate.lookup_join(frame, f"lake.{database}.t", on=value),
        "connect": lambda value: lockgate.connect(value, spark=spark, catalog="hostile"),
        "connect catalog": lambda value: lockgate.connect(tmp_path, spark=spark, catalog=value),
        "connect keys": lambda value: lockgate.connect(
            tmp_path, spark=spark, catalog="hostile", keys=value or 1
        ),
        "connect spark": lambda value: lockgate.connect(tmp_path, spark=value if value is not None else 1),
        "attach": lambda value: lockgate.attach(value),
        "configure": lambda value: lockgate.configure(value, warehouse="x"),
    }
    found = []
    for name, door in doors.items():
        for value in values:
            error = escaped(partial(door, value))
            if error is not None:
                found.append(f"{name}({value!r:.40}): {error}")
    assert found == []
