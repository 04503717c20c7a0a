"""Copies of encrypted columns in the clear, copied further: allowed, warned of or refused by lineage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockgate.errors import PlaintextWarning
from lockgate.lineage import declare
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("own_index")

CONF = "spark.lockgate.lineage.on-plaintext"
TOLD = r"gets values of encrypted columns in the clear, from copies of them: "


@pytest.fixture(scope="module")
def copy(lake: Lake, shared_table: Callable[[str], str]) -> str:
    """A table with a copy of an encrypted column that somebody let pass."""
    people, name = shared_table("people"), shared_table("copied")
    lake.sql(
        f"CREATE TABLE {people} (id INT, ssn STRING, pay INT) "
        "TBLPROPERTIES ('orc.encrypt' = 'pii:ssn;other:pay')"
    )
    lake.sql(f"INSERT INTO {people} VALUES (1, '777', 10)")
    lake.sql(f"CREATE TABLE {name} (id INT, open STRING, digest STRING)")
    with pytest.warns(PlaintextWarning, match="add 'pii:open' to 'orc.encrypt'"):
        lake.sql(f"INSERT INTO {name} SELECT id, concat(ssn, '!'), sha2(ssn, 256) FROM {people}")
    return name


@pytest.fixture(scope="module")
def keyed_copy(lake: Lake, copy: str, shared_table: Callable[[str], str]) -> str:
    """A copy of the copy, with one row a key."""
    name = shared_table("keyed")
    lake.sql(f"CREATE TABLE {name} (id INT, open STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    with choice(lake, "allow"):
        lake.sql(f"INSERT INTO {name} SELECT id, open FROM {copy}")
    return name


@contextmanager
def choice(lake: Lake, value: str) -> Iterator[None]:
    lake.spark.conf.set(CONF, value)
    try:
        yield
    finally:
        lake.spark.conf.unset(CONF)


@contextmanager
def silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_copy_of_a_copy_is_warned_of(lake: Lake, copy: str, table: Callable[[str], str]) -> None:
    with pytest.warns(PlaintextWarning, match=rf"{TOLD}o \(from .*copied\.open, a copy of .*people\.ssn\)"):
        lake.sql(f"CREATE TABLE {table('third')} AS SELECT id, upper(open) AS o FROM {copy}")
    with silent():
        lake.sql(f"CREATE TABLE {table('ids')} AS SELECT id, digest, length(open) > 3 AS l FROM {copy}")
    with pytest.warns(PlaintextWarning, match=r"from .*third\.o, a copy of .*people\.ssn"):
        lake.spark.table(table("third")).writeTo(table("fourth")).create()
    with pytest.warns(PlaintextWarning, match=rf"refills {TOLD}|{TOLD}open"):
        lake.sql(f"CREATE TABLE {table('refills')} AS SELECT open FROM {copy}")


def test_it_is_refused_before_a_row_is_written(lake: Lake, copy: str, table: Callable[[str], str]) -> None:
    target, own = table("target"), table("own")
    lake.sql(f"CREATE TABLE {target} (open STRING)")
    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        lake.sql(f"INSERT INTO {target} SELECT open FROM {copy}")
    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        lake.sql(f"CREATE TABLE {table('never')} AS SELECT open FROM {copy}")
    assert lake.table(target).count() == 0
    assert not lake.catalog.table_exists(table("never").removeprefix("lake."))
    lake.sql(f"CREATE TABLE {own} (open STRING) TBLPROPERTIES ('lineage.on-plaintext' = 'allow')")
    with choice(lake, "refuse"), silent():
        lake.sql(f"INSERT INTO {own} SELECT open FROM {copy}")
    with choice(lake, "allow"), silent():
        lake.sql(f"INSERT INTO {target} SELECT open FROM {copy}")


def test_what_is_encrypted_alike_is_no_copy_in_the_clear(
    lake: Lake, copy: str, table: Callable[[str], str]
) -> None:
    own, other = table("own"), table("other")
    lake.sql(f"CREATE TABLE {own} (open STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:open')")
    lake.sql(f"CREATE TABLE {other} (open STRING) TBLPROPERTIES ('orc.encrypt' = 'other:open')")
    with choice(lake, "refuse"):
        lake.sql(f"INSERT INTO {own} SELECT open FROM {copy}")
        with pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
            lake.sql(f"INSERT INTO {other} SELECT open FROM {copy}")


def test_values_that_stay_in_their_column_are_left_alone(lake: Lake, copy: str) -> None:
    with choice(lake, "refuse"), silent():
        lake.sql(f"UPDATE {copy} SET id = id + 1 WHERE id = 7")
        lake.sql(f"DELETE FROM {copy} WHERE id = 7")
        with pytest.raises(Exception, match=r"digest \(from .*copied\.open"):
            lake.sql(f"UPDATE {copy} SET digest = open")


def test_files_and_streams(lake: Lake, copy: str, table: Callable[[str], str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        lake.spark.table(copy).select("open").write.json(out)
    with choice(lake, "allow"):
        lake.spark.table(copy).select("open").write.json(out)
    with pytest.warns(PlaintextWarning, match=rf"from file:{out}\.open, a copy of .*people\.ssn"):
        lake.spark.read.schema("open STRING").json(out).writeTo(table("read")).create()
    lake.sql(f"CREATE TABLE {table('sink')} (open STRING)")
    stream = lake.spark.readStream.schema("open STRING").json(out).writeStream
    started = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.warns(PlaintextWarning, match=rf"sink {TOLD}open") as told:
        started.toTable(table("sink")).awaitTermination()
    assert len(told) == 1


FORMS = {
    "in SQL": {},
    "in the JVM": {"lookup.strategy": "lookup", "lookup.in-jvm": "true"},
    "in Python": {"lookup.strategy": "lookup", "lookup.in-jvm": "false"},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_lookup_of_a_copy(
    lake: Lake,
    keyed_copy: str,
    table: Callable[[str], str],
    options: dict[str, str],
    lookups_end: None,
    form: str,
) -> None:
    """A lookup join reads its dimension from a cache; what it adds comes from the dimension all the same."""
    target = table("looked_up")
    lake.sql(f"CREATE TABLE {target} (id INT, open STRING)")
    orders = lake.spark.range(1, 3).selectExpr("CAST(id AS INT) AS id")
    hints = ", ".join(f"'{key}'='{value}'" for key, value in options.items())

    def write() -> None:
        if form == "in SQL":
            orders.createOrReplaceTempView("orders_of_copies")
            dimension = f"{keyed_copy} /*+ OPTIONS({hints}) */ FOR SYSTEM_TIME AS OF PROCTIME() AS d"
            query = f"SELECT o.id, upper(d.open) FROM orders_of_copies o LEFT JOIN {dimension} ON o.id = d.id"
            lake.sql(f"INSERT INTO {target} {query}")
        else:
            given = {**options, **FORMS[form]}
            found = lookup_join(orders, keyed_copy, "id", select=["open"], options=given)
            found.selectExpr("id", "upper(open) AS open").writeTo(target).append()

    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        write()
    assert lake.table(target).count() == 0
    with pytest.warns(PlaintextWarning, match=rf"{TOLD}open \(from .*keyed\.open, a copy of .*people\.ssn\)"):
        write()
    assert sorted(map(tuple, lake.table(target).collect()))[0][0] == 1


def test_batches_given_to_a_function(
    lake: Lake, copy: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    target, out = table("batches"), str(tmp_path / "out")
    lake.sql(f"CREATE TABLE {target} (open STRING)")
    with choice(lake, "allow"):
        lake.spark.table(copy).select("open").write.json(out)

    def run(folder: str) -> None:
        def add(batch: DataFrame, number: int) -> None:
            batch.select("open").writeTo(target).append()

        stream = lake.spark.readStream.schema("open STRING").json(out).writeStream.foreachBatch(add)
        started = stream.option("checkpointLocation", str(tmp_path / folder))
        started.trigger(availableNow=True).start().awaitTermination()

    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        run("refused")
    assert lake.table(target).count() == 0
    with pytest.warns(PlaintextWarning, match=rf"batches {TOLD}open"):
        run("warned")
    assert lake.table(target).count() > 0


DECLARED = {
    "rows of a program": (".open", "a copy of .*people\\.ssn"),
    "rows of a text": (".open", "a copy of .*people\\.ssn"),
    "an encrypted column": (".ssn", "as the program declares"),
}


@pytest.mark.parametrize("origin", DECLARED)
def test_declared_columns(lake: Lake, copy: str, table: Callable[[str], str], origin: str) -> None:
    """Spark computes both steps as one, and then shows nothing of what was declared."""
    target, (column, told) = table("declared"), DECLARED[origin]
    lake.sql(f"CREATE TABLE {target} (open STRING)")
    source = (copy if column == ".open" else copy.replace("copied", "people")) + column
    rows = (
        lake.sql("SELECT * FROM VALUES ('777') AS t(open)")
        if origin == "rows of a text"
        else lake.spark.createDataFrame([("777",)], "open STRING")
    )
    declared = declare(rows, {"open": [source]})
    upper = declared.selectExpr("upper(open) AS open")
    with choice(lake, "refuse"), silent():
        declared.selectExpr("sha2(open, 256) AS open").writeTo(target).append()
    with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
        upper.writeTo(target).append()
    assert lake.table(target).count() == 1
    with pytest.warns(PlaintextWarning, match=rf"clear.*: open \(from .*{column}, {told}\)"):
        upper.writeTo(target).append()


@pytest.mark.parametrize(
    "text", ["no JSON", "{}", "7", '[["lake"]]', '[["lake..x", ["a"]], ["/f", ["b"]]]', 7]
)
def test_metadata_that_declare_nothing_readable(
    lake: Lake, table: Callable[[str], str], text: str | int
) -> None:
    """Files carry metadata of those who made them: such a file is written on like any other."""
    target, before = table("hostile"), lake.lineage_status()["last_problem"]
    rows = lake.spark.createDataFrame([("777",)], "open STRING")
    rows = rows.withMetadata("open", {"lockgate.lineage": text})
    with choice(lake, "refuse"), silent():
        rows.writeTo(target).create()
    assert lake.table(target).count() == 1
    assert lake.lineage_status()["last_problem"] == before


def test_declared_columns_of_a_stream(
    lake: Lake, copy: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    target, source = table("stream"), str(tmp_path / "in")
    lake.sql(f"CREATE TABLE {target} (open STRING)")
    lake.sql("SELECT 1 AS id").write.json(source)
    static = declare(
        lake.spark.createDataFrame([(1, "777")], "id INT, open STRING"), {"open": [f"{copy}.open"]}
    )
    rows = lake.spark.readStream.schema("id INT").json(source).join(static, "id")
    upper = rows.selectExpr("upper(open) AS open")

    def add(batch: DataFrame, number: int) -> None:
        batch.selectExpr("lower(open) AS open").writeTo(target).append()

    for name, writer in {"table": upper.writeStream, "batches": upper.writeStream.foreachBatch(add)}.items():
        given = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)
        started = given.toTable if name == "table" else lambda _, given=given: given.start()
        with choice(lake, "refuse"), pytest.raises(Exception, match=r"refused by 'lineage\.on-plaintext'"):
            started(target).awaitTermination()
    assert lake.table(target).count() == 0
