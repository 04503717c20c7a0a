"""A matrix: what is asked of relations under policies, and the kinds of relations that it is asked of.

A question's answer is the same for each kind, and so is what it may not show. `governed_relations` makes
the relations; a column of the matrix is a line there, and a row is a function here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from governed_foreign import CHANGED, running, shown_by, start, streamed
from governed_relations import (
    MORE,
    OURS,
    QUERIED,
    SECRET,
    STREAMED,
    Hides,
    Relation,
    Relations,
    made_relations,
)
from governed_world import World, governed
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from ranger_world import allow
from spark_version import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate import Lake

# One kind of each way to rows.
SOURCES = ("append", "partitioned", "catalog", "jdbc", "path parquet")
ONLY_Y = f"dept = '{SECRET}y'"


@dataclass(frozen=True)
class Case:
    """A cell of the matrix: a kind of relation, in a world of users."""

    world: World
    lake: Lake
    relations: Relations
    kind: str

    @property
    def relation(self) -> Relation:
        """The relation of the kind that no question changes."""
        return self.relations.shared(self.kind)

    def limit(self, hides: Hides | None = None, *more: dict[str, Any], **accesses: Any) -> Relation:
        """Hide from ann what the kind hides, or something else."""
        self.relations.hide(self.relation, hides, *more, **accesses)
        return self.relation

    def frame(self, user: str = "ann") -> DataFrame:
        return self.relation.frame(self.world.session(user))

    def stream(self, user: str = "ann") -> DataFrame:
        return self.relation.stream(self.world.session(user))


Question = Callable[[Case], None]
MATRIX: dict[tuple[str, str], Question] = {}


def asked_of(*kinds: str) -> Callable[[Question], Question]:
    """Ask a question of kinds of relations."""

    def ask(question: Question) -> Question:
        MATRIX.update({(kind, question.__name__.replace("_", " ")): question for kind in kinds})
        return question

    return ask


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


# --- queries ---


@asked_of(*QUERIED)
def permitted_rows_and_masked_values_are_shown(case: Case) -> None:
    relation = case.limit()
    frame, shown = case.frame(), list(relation.shown)
    assert rows_of(frame.select(*relation.columns)) == shown
    assert rows_of(frame.drop(*relation.hides.denied).select(*relation.columns)) == shown
    assert sorted(map(tuple, frame.select(*relation.columns).rdd.collect())) == shown
    assert frame.select("id").count() == len(shown)
    assert len(rows_of(case.frame("root").select(*relation.columns))) == relation.row_count


@asked_of(*QUERIED)
def a_denied_column_is_refused_by_name(case: Case) -> None:
    case.limit()
    frame = case.frame()
    for use in (
        frame.select("salary"),
        frame.where("salary > 5").select("id"),
        frame.orderBy("salary").select("id"),
        frame.groupBy("id").max("salary"),
        frame,
    ):
        with pytest.raises(AnalysisException, match=r"columns salary\) is denied to user 'ann'"):
            use.collect()
    try:
        with pytest.raises(AnalysisException, match=r"columns salary\) is denied"):
            frame.cache().count()
    finally:
        frame.unpersist()


@asked_of(*SOURCES)
def expressions_meet_no_hidden_row(case: Case) -> None:
    """Of bob the number is 2, and the row is hidden."""
    relation = case.limit()
    frame, expected = case.frame(), [(row[0],) for row in relation.shown]
    assert rows_of(frame.where("8 / (id - 2) > -9").select("id")) == expected
    assert rows_of(frame.where("IF(name = 'bob', raise_error('seen'), true)").select("id")) == expected
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        case.frame("root").where("8 / (id - 2) > -9").select("id").collect()


@asked_of("key", *SOURCES)
def aggregates_are_those_of_shown_rows(case: Case) -> None:
    """Files and databases could answer them, of all rows."""
    relation = case.limit()
    session = case.world.session("ann")
    session.conf.set("spark.sql.parquet.aggregatePushdown", "true")
    try:
        query = f"SELECT min(id), max(id), count(*), max(ssn) FROM {relation.text}"
        assert case.world.sql(query) == [(1, 3, 2, "xxx-xx-3333")]
        assert case.world.sql(query, "root") == [(1, 4, 4, "444-44-4444")]
    finally:
        session.conf.unset("spark.sql.parquet.aggregatePushdown")


@asked_of(*QUERIED)
def plans_name_no_value_of_a_hidden_column(case: Case) -> None:
    """A query that does not use the column is planned behind the barrier all the same."""
    for hides in (Hides(case.relation.hides.rows, ("ssn",)), Hides(denied=("dept",))):
        case.limit(hides)
        frame: Any = case.frame().where("name > 'a'").select("id", "name")
        told = frame._jdf.queryExecution().toString()
        assert "rights of ann" in told
        assert SECRET not in told
        assert "right(" not in told


@asked_of("key", *SOURCES)
def who_may_read_nothing_learns_no_column(case: Case) -> None:
    case.relations.put()
    for statement in (
        "SELECT * FROM {t}",
        "DESCRIBE QUERY SELECT * FROM {t}",
        "EXPLAIN SELECT * FROM {t}",
        "EXPLAIN EXTENDED SELECT (SELECT struct(*) FROM {t}) AS s",
        "SELECT salar FROM {t}",
        "CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM {t}",
        "CACHE TABLE held AS SELECT (SELECT struct(*) FROM {t}) AS s",
    ):
        try:
            told = str(case.world.session("ann").sql(statement.format(t=case.relation.text)).collect())
        except PySparkException as error:
            told = str(error)
        assert "is denied to user 'ann'" in told, statement
        assert "salary" not in told, statement
        assert "Barrier" not in told, statement


@asked_of("path csv", "path json")
def a_reader_is_refused_before_files_are_opened(case: Case) -> None:
    case.relations.put()
    with pytest.raises(
        AnalysisException, match=f"SELECT on path {case.relation.name} is denied to user 'ann'"
    ):
        case.frame()


@asked_of("append", "partitioned", "jdbc")
def the_catalog_describes_what_may_be_read(case: Case) -> None:
    name, catalog = case.relation.name, case.world.session("ann").catalog
    calls: list[Callable[[str], Any]] = [catalog.listColumns, catalog.getTable, catalog.tableExists]
    case.relations.put()
    for call in calls:
        with pytest.raises(AnalysisException, match="is denied to user 'ann'") as refused:
            call(name)
        assert "salary" not in str(refused.value)
    case.relations.put(allow(f"{name}.id", users=["ann"]))
    assert {column.name for column in catalog.listColumns(name)} == {"id", "name", "ssn", "dept", "salary"}
    assert catalog.getTable(name).name == name.split(".")[-1]
    assert catalog.tableExists(name)


@asked_of(*SOURCES)
def what_was_cached_for_another_is_not_shown(case: Case) -> None:
    relation = case.limit()
    whole = case.frame("root").select(*relation.columns).cache()
    try:
        for _ in range(2):
            assert whole.count() == relation.row_count
            assert rows_of(case.frame().select(*relation.columns)) == list(relation.shown)
            assert len(rows_of(case.frame("root").select(*relation.columns))) == relation.row_count
    finally:
        whole.unpersist()


@asked_of(*SOURCES)
def a_view_of_another_shows_what_its_reader_may_see(case: Case) -> None:
    relation = case.limit()
    try:
        for owner, reader, rows in (
            ("root", "ann", len(relation.shown)),
            ("ann", "root", relation.row_count),
        ):
            case.frame(owner).createOrReplaceGlobalTempView("of_another")
            found = case.world.sql("SELECT id, ssn FROM global_temp.of_another", reader)
            assert len(found) == rows
            assert reader == "root" or found == list(relation.shown)
    finally:
        case.lake.sql("DROP VIEW IF EXISTS global_temp.of_another")


@asked_of(*QUERIED)
def policies_that_change_end_old_plans(case: Case) -> None:
    relation = case.limit()
    frame = case.frame().select(*relation.columns)
    assert rows_of(frame) == list(relation.shown)
    case.limit(Hides("id = 4", relation.hides.masked))
    for old in (frame, frame.filter("id > 0")):
        with pytest.raises(AnalysisException, match="policies that have changed"):
            old.collect()
    assert rows_of(case.frame().select(*relation.columns)) == [(4, "xxx-xx-4444")]


@asked_of(*QUERIED)
def rights_are_asked_about_at_each_run(case: Case) -> None:
    """Of a plan that Spark keeps, with what its stages and caches hold, if nothing was hidden at first."""
    relation = case.limit(Hides())
    frames = [case.frame().select(*relation.columns) for _ in range(3)]
    frames[1] = frames[1].groupBy("id").count()
    frames[2].cache()
    frames.append(frames[0].filter("id > 0"))
    try:
        for frame in (*frames, *frames):
            assert len(frame.collect()) == relation.row_count
        for now in (partial(case.limit, Hides("id = 1")), case.relations.put):
            now()
            for number, old in enumerate(frames):
                with pytest.raises(AnalysisException) as refused:
                    pytest.fail(f"frame {number} shows {old.collect()}")
                assert re.search("policies that have changed|is denied to user", str(refused.value))
    finally:
        frames[2].unpersist()


LIMITS = {
    "rows": Hides("dept = '{x}'"),
    "values": Hides(masked=("dept",)),
    "a column": Hides(denied=("dept",)),
    "rows by a query": Hides(
        "id IN (WITH c AS (SELECT id, rand() AS r FROM {t} WHERE dept = '{x}') "
        "SELECT a.id FROM c a JOIN c b ON a.r = b.r)"
    ),
}


def files_have_no_names(case: Case, hides: Hides) -> None:
    """Names of files hold values of partition columns."""
    table = case.relation.name
    condition = hides.rows and hides.rows.format(t=table, x=f"{SECRET}x")
    case.limit(Hides(condition, hides.masked, hides.denied))
    shown = [1, 3] if hides.rows else [1, 2, 3, 4]
    session = case.world.session("ann")
    frame = case.frame().select("id")
    for each in (
        frame,
        frame.where("id > 0").distinct(),
        frame.alias("a").join(frame.alias("b"), "id"),
        session.sql(f"SELECT id FROM range(9) WHERE id IN (SELECT id FROM {table})"),
        session.sql(f"SELECT id FROM {table} WHERE id < (SELECT max(id) + 1 FROM {table})"),
    ):
        assert each.inputFiles() == []
        assert sorted(row[0] for row in each.collect()) == shown
    with pytest.raises(PySparkException, match="_metadata"):
        case.world.sql(f"SELECT _metadata.file_path FROM {table}")


MATRIX |= {
    (kind, f"files have no names where policies hide {what}"): partial(files_have_no_names, hides=hides)
    for what, hides in LIMITS.items()
    for kind in ("partitioned", "catalog")
}


@asked_of("partitioned", "catalog")
def files_have_names_where_nothing_is_hidden(case: Case) -> None:
    case.limit(Hides())
    assert len(case.frame().inputFiles()) > 0
    assert len(case.frame("root").inputFiles()) > 0


# --- statements by which hidden rows would be shown or reached ---


def refused_where_rows_are_hidden(case: Case, statement: str) -> None:
    mine = [
        allow(path, "all", users=["ann"])
        for path in ("spark_catalog.default.mine*.*", "spark_catalog.mine*", "lake.*.mine*.*", "lake.*.mine*")
    ]
    relation = case.limit(
        Hides(case.relation.hides.rows, ("name",)), *mine, accesses=("select", "insert", "alter", "delete")
    )
    try:
        told = str(case.world.sql(statement.format(t=relation.name, database=relation.name.split(".")[1])))
    except PySparkException as error:
        told = f"refused: {error}"
    unknown = (
        SPARK < (4, 2)
        and case.kind == "append"
        and statement.startswith("DESCRIBE")
        and "PARTITION" in statement
    )
    assert ("does not support partition" if unknown else "without row filter and masks") in told
    assert SECRET not in told.replace(f"{SECRET}y')", "")
    assert len(case.world.sql(f"SELECT id FROM {relation.name}", "root")) == 4


STATEMENTS = (
    "SELECT input_file_name() FROM {t}",
    "SELECT id FROM {t} WHERE input_file_block_start() > 0",
    "SHOW PARTITIONS {t}",
    "SHOW PARTITIONS {t} PARTITION (dept='zq-y')",
    "DESCRIBE EXTENDED {t}",
    "DESCRIBE EXTENDED {t} salary",
    "DESCRIBE EXTENDED {t} PARTITION (dept='zq-y')",
    "ALTER TABLE {t} DROP PARTITION (dept='zq-y')",
    "INSERT OVERWRITE {t} SELECT 1, 'a', 'b', 1, 'zq-x'",
    "INSERT OVERWRITE {t} PARTITION (dept='zq-y') SELECT 1, 'a', 'b', 1",
    "TRUNCATE TABLE {t}",
    "ALTER TABLE {t} RENAME TO {database}.mine_now",
)
MATRIX |= {
    (kind, statement): partial(refused_where_rows_are_hidden, statement=statement)
    for statement in STATEMENTS
    for kind in ("append", "partitioned")
}


# --- streams ---


@asked_of(*(kind for kind in STREAMED if kind != "key"))
def a_stream_shows_what_a_query_shows(case: Case) -> None:
    relation = case.limit()
    shown = list(relation.shown)
    assert streamed(case.stream().select(*relation.columns)) == shown
    assert len(streamed(case.stream("root").select(*relation.columns))) == relation.row_count
    if relation.text and not relation.is_path:
        session, columns = case.world.session("ann"), ", ".join(relation.columns)
        case.stream().createOrReplaceTempView("streamed_view")
        assert streamed(session.sql(f"SELECT {columns} FROM streamed_view")) == shown
        condition = "value < 10" if case.kind == "rates" else "id > 0"
        query = f"SELECT {columns} FROM STREAM {relation.text} WHERE {condition}"
        assert streamed(session.sql(query)) == shown


@asked_of(*OURS, "parquet", "path json")
def a_stream_refuses_denied_columns_by_name(case: Case) -> None:
    case.limit()
    for used in (
        case.stream().select("salary"),
        case.stream().where("salary > 5").select("id"),
        case.stream(),
    ):
        with pytest.raises(StreamingQueryException, match=r"column \S*salary\b"):
            streamed(used)


@asked_of("parquet", "csv")
def a_stream_names_no_files(case: Case) -> None:
    relation = case.limit()
    with pytest.raises(StreamingQueryException, match=r"column input_file_name\(\) of"):
        streamed(case.stream().selectExpr("input_file_name() AS f"))
    with pytest.raises(AnalysisException, match="_metadata"):
        case.stream().select("_metadata.file_path")
    with pytest.raises(PySparkException, match="_metadata"):
        streamed(case.world.session("ann").sql(f"SELECT _metadata.file_path FROM STREAM {relation.text}"))


@asked_of(*OURS, "parquet", "path parquet")
def a_stream_shows_no_counts_and_no_conditions(case: Case) -> None:
    relation, seen = case.limit(), []
    with running(case.stream().select(*relation.columns), seen) as query:
        told = shown_by(query)
        assert [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]] == []
    assert sorted(seen) == list(relation.shown)
    assert "rights of ann" in told
    for hidden in (SECRET, "regexp", "right(", "LeftOut", "222-22"):
        assert hidden not in told


def fresh(case: Case) -> tuple[Relation, Callable[[], DataFrame], dict[str, Path]]:
    """Return a relation to which rows come, its stream for ann, and where the stream's progress is kept."""
    relation = case.relations.fresh(case.kind)
    place = case.relations.checkpoint()
    return relation, lambda: relation.stream(case.world.session("ann")), {"checkpointLocation": place}


@asked_of(*OURS)
def a_stream_goes_on_from_its_checkpoint(case: Case) -> None:
    relation, stream, checkpoint = fresh(case)
    case.relations.hide(relation)
    assert streamed(stream().select("id", "ssn"), **checkpoint) == list(relation.shown)
    relation.add(MORE)
    assert streamed(stream().select("id", "ssn"), **checkpoint) == [(5, "xxx-xx-5555")]
    grouped = stream().groupBy("dept").count().where("count > 0")
    assert set(streamed(grouped, mode="complete")) == {(f"{SECRET}x", 3)}
    assert len(streamed(stream().selectExpr("8 / (id - 2) AS v"))) == 3
    assert len(streamed(relation.stream(case.world.session("root")).select("id"))) == 6


@asked_of("append", "parquet")
def a_stream_ends_when_policies_change(case: Case) -> None:
    relation, stream, checkpoint = fresh(case)
    case.relations.hide(relation)
    frame, seen = stream().select("id", "ssn"), []
    assert streamed(frame, **checkpoint) == list(relation.shown)
    relation.add(MORE)
    case.relations.hide(relation, Hides(ONLY_Y))
    with pytest.raises(StreamingQueryException, match=CHANGED) as found:
        streamed(frame, seen, **checkpoint)
    assert SECRET not in str(found.value)
    frame = stream().select("id", "ssn")
    assert streamed(frame, **checkpoint) == [(6, "6")]
    case.relations.put()
    relation.add(MORE)
    denied = f"SELECT on table {relation.name} is denied to user 'ann'"
    with pytest.raises(StreamingQueryException, match=CHANGED if case.kind in OURS else denied):
        streamed(frame, seen, **checkpoint)
    assert seen == []


def a_stream_that_saw_all_asks_again(case: Case, *, narrowed: bool) -> None:
    """It has no barrier, so that its progress counts its rows."""
    relation, stream, _ = fresh(case)
    case.relations.hide(relation, Hides())
    column, seen = relation.columns[0], []
    query = start(stream().select(column), seen)
    try:
        if case.kind == "rates":
            while not seen:
                query.awaitTermination(0.2)
        else:
            query.processAllAvailable()
        if narrowed:
            case.relations.hide(relation, Hides(f"{column} = 1"))
        else:
            case.relations.put()
        before = len(seen)
        if case.kind == "rates":
            end = partial(query.awaitTermination, 60)
        else:
            relation.add(MORE)
            end = query.processAllAvailable
        message = f"{CHANGED}|rows and values that are hidden from you"
        if not narrowed:
            message = f"SELECT on .*{relation.name.removeprefix('lake.')}.* is denied to user 'ann'"
        with pytest.raises(StreamingQueryException, match=message):
            end()
    finally:
        query.stop()
    if case.kind == "rates":
        assert len(seen) % 10 == 0
    else:
        assert sorted(seen) == [(1,), (2,), (3,), (4,)]
        assert len(seen) == before
        assert any(each["numInputRows"] == 4 for each in query.recentProgress)


# No policy of Ranger hides a part of a path.
MATRIX |= {
    (kind, f"a stream that saw all asks again after rights were {change}"): partial(
        a_stream_that_saw_all_asks_again, narrowed=change == "narrowed"
    )
    for kind in ("append", "parquet", "rates", "path parquet")
    for change in ("narrowed", "revoked")
    if (kind, change) != ("path parquet", "narrowed")
}


# --- the matrix ---


@pytest.fixture(scope="module")
def made(
    lake: Lake,
    shared_table: Callable[[str], str],
    lake_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[World, Relations]]:
    folder = tmp_path_factory.mktemp("relations")
    database = shared_table("t").split(".")[1]
    with (
        governed(lake, folder / "policies.json") as world,
        made_relations(lake, world, database, lake_folder, folder) as relations,
    ):
        yield world, relations


@pytest.mark.parametrize(("kind", "question"), MATRIX, ids=lambda text: text)
def test_relation(lake: Lake, made: tuple[World, Relations], kind: str, question: str) -> None:
    world, relations = made
    MATRIX[kind, question](Case(world, lake, relations, kind))
