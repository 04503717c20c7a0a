"""Messages that the connector sends and gets, over statements of every kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from messages import Lie, lies, nulls, sample
from pyspark.errors import AnalysisException
from spark_version import SPARK

from lockgate.framework.lineage.lake_methods import wait_for_records
from lockgate.framework.spark.bridge import dispatcher as dispatcher_module
from lockgate.framework.spark.bridge import gateway
from lockgate.framework.spark.bridge.dispatcher import declared_operations
from lockgate.framework.spark.messages.shapes import fault_in, messages_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

# Asked by its own process, by clusters, after failures, for keys that this JVM did not make, or where
# somebody decides about access.
NOT_ASKED = {"bridge.hello", "keys.names", "keys.unwrap", "lookup.event", "lookup.poll", "write.abort"}
NOT_ASKED |= {"table.abort_staged", "governance.decide", "governance.of_policy", "governance.refuse"}
NOT_ASKED |= {"governance.record", "governance.batch", "governance.files"}


def more_than(shape: Any, value: Any, path: str = "") -> list[str]:
    """Return the keys of a message that its shape does not have."""
    if isinstance(shape, str) or value is None:
        return []
    ((rule, inside),) = shape.items()
    if rule == "null or":
        return more_than(inside, value, path)
    if rule == "list":
        return [found for each in value for found in more_than(inside, each, f"{path}[]")]
    if rule == "map":
        return [found for each in value.values() for found in more_than(inside, each, f"{path}.*")]
    if rule == "tuple":
        places = zip(inside, value, strict=True)
        return [found for shape, each in places for found in more_than(shape, each, f"{path}[]")]
    if rule == "either":
        return more_than(next(each for each in inside if fault_in(each, value) is None), value, path)
    if rule == "keys":
        below = [found for name in inside for found in more_than(inside[name], value[name], f"{path}.{name}")]
        return [f"{path}.{name}" for name in value if name not in inside] + below
    return []


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Any, Any]]]:
    """All questions and answers of the test, by operation."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    answer = dispatcher_module.Dispatcher._answer

    def noted(self: Any, question: Any) -> object:
        answered = answer(self, question)
        pair = (question.request, json.loads(json.dumps(answered)))
        found.setdefault(question.operation, []).append(pair)
        return answered

    monkeypatch.setattr(dispatcher_module.Dispatcher, "_answer", noted)
    return found


@pytest.mark.long
@pytest.mark.usefixtures("lookups_end")
def test_messages_hold_what_is_declared(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    messages: dict[str, list[tuple[Any, Any]]],
    tmp_path: Path,
) -> None:
    make_and_change_tables(spark, table)
    write_and_read(lake, spark, table)
    follow(spark, table("rows"), tmp_path)
    look_up(spark, table("rows"), table("keyed"), table("joined"), tmp_path)
    wait_for_records(spark)
    declared = declared_operations()
    not_asked = NOT_ASKED | ({"changes.plan", "changes.range"} if SPARK < (4, 3) else set())
    assert set(declared) - set(messages) - not_asked == set()
    more = set()
    for operation, pairs in messages.items():
        shapes = messages_of(declared[operation]) if operation in declared else None
        for pair in pairs if shapes else ():
            for shape, message in zip(shapes or (), pair, strict=True):
                more |= {f"{operation}: {path}" for path in more_than(shape, message)}
    assert more == set()


def make_and_change_tables(spark: SparkSession, table: Named) -> None:
    name, other = table("made"), table("other")
    database = name.rpartition(".")[0]
    spark.sql(f"CREATE TABLE {name} (id INT, day DATE, s STRING) PARTITIONED BY (day)")
    spark.sql(f"CREATE TABLE {other} LIKE {name}")
    spark.sql(f"DROP TABLE {other}")
    for change in (
        "ADD COLUMN n INT COMMENT 'n' FIRST",
        "ADD COLUMN after INT AFTER n",
        "ALTER COLUMN n TYPE BIGINT",
        "ALTER COLUMN n COMMENT 'number'",
        "ALTER COLUMN n SET DEFAULT 3",
        "ALTER COLUMN n AFTER id",
        "RENAME COLUMN after TO later",
        "DROP COLUMN later",
        "SET TBLPROPERTIES ('target-file-size' = '1 mb')",
        "UNSET TBLPROPERTIES ('target-file-size')",
    ):
        spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"ALTER TABLE {name} RENAME TO {other.removeprefix('lake.')}")
    spark.sql(f"CREATE OR REPLACE TABLE {other} AS SELECT 1 AS id, DATE'2024-01-01' AS day")
    spark.sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
    keyed = table("assigned")
    spark.sql(
        f"CREATE TABLE {keyed} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-1', "
        "'file.format' = 'parquet')"
    )
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 1)")
    moved = table("moved")
    spark.sql(
        f"CREATE TABLE {moved} (id INT, p STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '-1')"
    )
    spark.sql(f"INSERT INTO {moved} VALUES (1, 'a')")
    spark.sql(f"SHOW TABLES IN {database}").collect()
    spark.sql("SHOW NAMESPACES IN lake").collect()
    spark.sql("CREATE DATABASE lake.bridge_messages COMMENT 'c'")
    spark.sql("ALTER DATABASE lake.bridge_messages SET DBPROPERTIES ('a' = 'b')")
    spark.sql("DROP DATABASE lake.bridge_messages")
    with pytest.raises(AnalysisException, match="absent"):
        spark.table(table("absent"))
    spark.newSession().sql(f"SELECT * FROM {name}").collect()


def write_and_read(lake: Lake, spark: SparkSession, table: Named) -> None:
    rows, keyed, secret, left = table("rows"), table("keyed"), table("secret"), table("left")
    spark.sql(f"CREATE TABLE {rows} (id INT, day DATE, s STRING) PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {rows} VALUES (1, DATE'2024-01-01', 'a'), (2, DATE'2024-01-02', 'b')")
    spark.sql(f"INSERT OVERWRITE {rows} VALUES (3, DATE'2024-01-03', 'c')")
    assert spark.sql(f"SELECT count(*), max(day) FROM {rows}").first() is not None
    spark.sql(f"SELECT s FROM {rows} WHERE id > 1 AND day > DATE'2024-01-01' ORDER BY id LIMIT 1").collect()
    spark.sql(f"SELECT * FROM {rows} VERSION AS OF 1").collect()
    spark.sql(f"SELECT * FROM {rows} TIMESTAMP AS OF current_timestamp()").collect()
    spark.sql(f"SELECT * FROM {rows}.snapshots").collect()
    spark.sql(f"SELECT * FROM {rows}.audit_log").collect()
    spark.sql("SELECT * FROM lake.sys.tables").collect()
    spark.sql(f"SHOW PARTITIONS {rows}").collect()
    spark.sql(f"INSERT INTO {rows} VALUES (4, DATE'2024-01-04', 'd')")
    spark.sql(f"ALTER TABLE {rows} DROP PARTITION (day = DATE'2024-01-04')")
    spark.sql(f"UPDATE {rows} SET s = 'd' WHERE id = 3")
    spark.sql(f"DELETE FROM {rows} WHERE day = DATE'2024-01-03'")
    options = "'primary-key' = 'id', 'bucket' = '2'"
    spark.sql(f"CREATE TABLE {keyed} (id INT NOT NULL, v STRING) TBLPROPERTIES ({options})")
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 'c')")
    spark.sql(
        f"MERGE INTO {keyed} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'x'"
    )
    spark.sql(f"SELECT * FROM {rows} r JOIN {keyed} k ON r.id = k.id WHERE k.v = 'x'").collect()
    clause = "FOR SYSTEM_TIME AS OF PROCTIME()"
    spark.sql(f"SELECT k.v FROM (SELECT 1 AS id) AS o JOIN {keyed} {clause} AS k ON o.id = k.id").collect()
    marked = table("marked")
    spark.sql(f"CREATE TABLE {marked} (id INT) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    spark.sql(f"INSERT INTO {marked} SELECT id FROM range(10)")
    spark.sql(f"DELETE FROM {marked} WHERE id = 3")
    assert spark.table(marked).count() == 9
    spark.sql(f"CREATE TABLE {secret} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {secret} VALUES (1, '123')")
    spark.sql(f"CREATE TABLE {left} AS SELECT ssn FROM {secret}")
    spark.table(secret).write.format("noop").mode("overwrite").save()
    spark.sql("SHOW PROCEDURES IN lake.sys").collect()
    spark.sql(f"CALL lake.sys.compact(table => '{keyed.removeprefix('lake.')}')")


def follow(spark: SparkSession, followed: str, folder: Path) -> None:
    """Read a table as a stream, to its end and then for as long as it runs, and its changes."""
    stream = spark.readStream.option("scan.snapshot-id", 1).option("read.stream.maxSnapshotsPerTrigger", 1)
    rows = stream.option("streaming-read-overwrite", "true").table(followed)
    for runs in (True, False):
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / f"{runs}"))
        query = (
            writer.trigger(processingTime="0.1 seconds") if runs else writer.trigger(availableNow=True)
        ).start()
        query.processAllAvailable()
        query.stop()
    if SPARK >= (4, 3):
        spark.sql(f"SELECT * FROM {followed} CHANGES FROM VERSION 1 TO VERSION 1").collect()


def look_up(spark: SparkSession, followed: str, dimension: str, made: str, folder: Path) -> None:
    """Join a stream with a dimension into a table that gets the column which the dimension brings."""
    stream = spark.readStream.option("scan.snapshot-id", 1).option("streaming-read-overwrite", "true")
    stream.table(followed).createOrReplaceTempView("bridge_rows")
    clause = "FOR SYSTEM_TIME AS OF PROCTIME()"
    joined = spark.sql(f"SELECT o.id, k.v FROM bridge_rows o JOIN {dimension} {clause} AS k ON o.id = k.id")
    spark.sql(f"CREATE TABLE {made} (id INT)")
    writer = joined.writeStream.option("checkpointLocation", str(folder / "joined"))
    query = writer.option("write.merge-schema", "true").trigger(availableNow=True).toTable(made)
    query.awaitTermination()
    assert spark.table(made).columns == ["id", "v"]
    spark.catalog.dropTempView("bridge_rows")


# --- lies ----------------------------------------------------------------------------------------


def test_both_sides_find_the_same_faults(spark: SparkSession) -> None:
    """In answers, and in questions of executors, which the driver's JVM checks; null is a fault, too."""
    jvm: Any = spark._jvm
    twins = jvm.io.lockgate.spark.messages.MessageTwins
    answers, requests = [], []
    for operation, handler in declared_operations().items():
        declared = messages_of(handler)
        assert declared is not None
        lied = [Lie(sample(declared.answer), ""), *lies(declared.answer), *nulls(declared.answer)]
        answers += [(operation, lie) for lie in lied if not NOT_IN_JAVA.search(lie.fault)]
        if operation in FROM_EXECUTORS:
            lied = [Lie(sample(declared.request), ""), *lies(declared.request), *nulls(declared.request)]
            requests += [(operation, lie) for lie in lied if not NOT_IN_JAVA.search(lie.fault)]
    assert len(answers) > 800
    assert len(requests) > 200
    cases = [{"operation": operation, "value": lie.value} for operation, lie in answers]
    check_faults(json.loads(twins.faultsInAnswers(json.dumps(cases))), answers)
    cases = [{"type": FROM_EXECUTORS[operation], "value": lie.value} for operation, lie in requests]
    check_faults(json.loads(twins.faults(json.dumps(cases))), requests)


def check_faults(found: list[str | None], expected: list[tuple[str, Lie]]) -> None:
    for fault, (operation, lie) in zip(found, expected, strict=True):
        wanted = lie.fault or None
        if fault is not None and fault.endswith(" is null"):
            wanted = wanted and f"{wanted.partition(' is not ')[0]} is null"
        elif fault is not None and fault.endswith("64 bits"):
            # Jackson does not always say in which element of a collection a number is too large.
            wanted = wanted and re.sub(r"(\.\*|\[\])(?= is not)", "", wanted)
            fault = re.sub(r"(\.\*|\[\])(?= is not)", "", fault)
        assert (operation, fault) == (operation, wanted), lie


# Tuples, and what is of several kinds, are passed on: the other Python checks them.
NOT_IN_JAVA = re.compile(r"is not a list of \d|\[\d\]|has none of its forms|\bok\b")
FROM_EXECUTORS = {
    "keys.create": "CreateKeyRequest",
    "keys.unwrap": "UnwrapRequest",
    "lookup.event": "EventRequest",
    "write.assign": "AssignRequest",
    "write.locate": "LocateRequest",
}


@pytest.mark.parametrize("operation", ["namespace.load", "scan.filters", "lookup.poll", "lineage.record"])
def test_an_answer_that_is_not_as_declared_is_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    declared = messages_of(declared_operations()[operation])
    assert declared is not None
    for lie in [lie for lie in lies(declared.answer) if "number of 64 bits" not in lie.fault][:12]:
        monkeypatch.setitem(dispatcher_module._OWN, operation, answering(lie.value))
        with pytest.raises(AnalysisException) as failed:
            ask(spark, operation)
        expected = f"Python's answer to '{operation}' is not as declared: {lie.fault}"
        assert expected in str(failed.value), lie


REPLIES = [
    b"",
    b"null",
    b"[]",
    b"7",
    b"{}",
    b'{"ok": 1}',
    b'{"governed": true}',
    b'{"ok": 1, "governed": "yes"}',
    b'{"ok": 1, "governed": false, "moreover": 1}',
    b'{"error": "plain"}',
    b'{"error": {"type": "E"}}',
    b'{"error": {"type": null, "message": "m"}}',
    b'{"ok": ' + b"[" * 5_000 + b"]" * 5_000 + b', "governed": false}',
    b'{"ok": 1, "governed": fal',
    b"\xff\xfe",
]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: repr(reply[:30]))
def test_an_answer_in_no_envelope_is_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, reply: bytes
) -> None:
    server = gateway._server
    assert server is not None
    monkeypatch.setattr(server, "_answer", lambda question: reply)
    with pytest.raises(
        AnalysisException, match=r"is not as declared: |Python side did not answer 'bridge.hello'"
    ):
        ask(spark, "bridge.hello")


def test_an_event_that_is_not_as_declared_is_refused(spark: SparkSession) -> None:
    """From an executor, which runs code of users."""
    jvm: Any = spark._jvm
    declared = messages_of(declared_operations()["lookup.event"])
    assert declared is not None
    assert isinstance(declared.request, dict)
    for lie in [*lies(declared.request["keys"]["event"], "event")][::4]:
        fields = {"executor": "1", "name": "n", "event": lie.value}
        asked = json.dumps({"question": "lookup.event", "fields": fields}).encode()
        answer = json.loads(
            jvm.io.lockgate.spark.enforcement.parts.ExecutorQuestions.answer(asked).toString()
        )
        assert answer["error"]["type"] == "BridgeError"
        fault = answer["error"]["message"]
        if NOT_IN_JAVA.search(lie.fault):
            assert fault.endswith(lie.fault)
        else:
            refusal = "a process of an executor sent an invalid message: "
            check_faults([fault.removeprefix(refusal)], [("lookup.event", lie)])


def answering(value: object) -> Callable[..., object]:
    return lambda context, request: value


def ask(spark: SparkSession, operation: str) -> None:
    """Ask as the connector does; the question is no matter."""
    bridge: Any = spark._jvm.io.lockgate.spark.bridge.Bridge  # type: ignore[union-attr]  # there is a JVM
    bridge.ask(operation, bridge.object())
