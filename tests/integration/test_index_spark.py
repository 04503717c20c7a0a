"""The index database from SQL: tasks' files are indexed by their commit, and reports say what is left out."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from unspaced_texts import SCRIPTS

from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture(scope="module")
def events(spark: SparkSession, shared_table: Named) -> str:
    """Three files: each has a host and a tool of its own, between those that all have."""
    name = shared_table("indexed_events")
    spark.sql(
        f"CREATE TABLE {name} (id INT, host STRING, command STRING) TBLPROPERTIES "
        "('index.values.columns' = 'host', 'index.ngrams.columns' = 'command')"
    )
    for n in range(3):
        insert(spark, name, [f"({n * 10 + i}, '{h}', '{c}')" for i, (h, c) in enumerate(commands(n))])
    return name


def insert(spark: SparkSession, name: str, rows: list[str]) -> None:
    """Insert rows as one file."""
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")


def commands(number: int) -> list[tuple[str, str]]:
    return [("a", "first"), (f"host-{number}", f"run Tool{number}.exe /quiet"), ("z", "zero")]


def skipped(frame: Any) -> int:
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    metric = plan.collectLeaves().head().metrics().apply("skipped_by_index")
    assert metric.name().get() == "files skipped by index"
    return int(metric.value())


@pytest.mark.parametrize(
    ("condition", "ids", "left_out"),
    [
        ("host = 'host-1'", [11], 2),
        ("host IN ('host-0', 'host-2', 'nobody')", [1, 21], 1),
        ("command LIKE '%Tool2%'", [21], 2),
        ("command LIKE '%Tool1%' OR host = 'host-2'", [11, 21], 1),
        ("contains(command, 'nowhere')", [], 3),
        # Conditions that Spark offers to no source, or only in a form of its own.
        ("command RLIKE '(Tool0|ool2[.]ex)e?'", [1, 21], 1),
        ("command LIKE 'run%Tool1%quiet'", [11], 2),
        ("command ILIKE '%tool1.EXE%'", [11], 2),
        ("lower(command) RLIKE 'tool2|nowhere'", [21], 2),
        ("command LIKE ANY ('%Tool0%x%', '%Tool2_exe%')", [1, 21], 1),
        ("command LIKE 'run!%%Tool1%exe%' ESCAPE '!' OR host = 'host-2'", [21], 2),
        ("(command LIKE 'r%Tool0%q%' AND id % 2 = 1) OR (host = 'host-1' AND length(host) > 3)", [1, 11], 1),
        ("NOT (command NOT LIKE 'run%Tool2%quiet' OR rand() > 2)", [21], 2),
        ("lake.sys.match(command, 'QUIET tool1')", [11], 2),
        ("id > 0 AND NOT lake.sys.match(command, 'run')", [2, 10, 12, 20, 22], 0),
    ],
)
def test_file_indexes_skip_files(
    spark: SparkSession, lake: Lake, events: str, condition: str, ids: list[int], left_out: int
) -> None:
    frame = spark.sql(f"SELECT id FROM {events} WHERE {condition} ORDER BY id")
    assert [row.id for row in frame.collect()] == ids
    assert skipped(spark.sql(f"SELECT id FROM {events} WHERE {condition}")) == left_out
    (report,) = lake.explain_pushdown(f"SELECT id FROM {events} WHERE {condition}")
    (step,) = [each for each in report.steps if each.name == "index"]
    assert step.before.files - step.after.files == left_out
    assert "segments" in step.by


def test_a_report_names_what_a_condition_requires(lake: Lake, events: str) -> None:
    (report,) = lake.explain_pushdown(f"SELECT id FROM {events} WHERE command RLIKE 'run.*Tool2' AND id > 0")
    assert "contains(command, 'run') AND contains(command, 'Tool2')" in report.skipping
    assert any("RLIKE" in text for text, _ in report.remaining)


def test_procedures_of_the_database(spark: SparkSession, shared_table: Named) -> None:
    name = shared_table("index_upkeep")
    spark.sql(
        f"CREATE TABLE {name} (id INT, host STRING) "
        "TBLPROPERTIES ('index.values.columns' = 'host', 'index.write.enabled' = 'false')"
    )
    for n in range(2):
        insert(spark, name, ["(1, 'a')", f"(2, 'h{n}')", "(3, 'z')"])
    table = name.removeprefix("lake.")
    advice = spark.sql(f"CALL lake.sys.index_advice(table => '{table}', columns => array('host'))").collect()
    assert {row.kind for row in advice} == {"bloom", "ngrams", "values", "words"}
    assert {row.kind for row in advice if row.is_indexed} == {"values"}
    question = f"SELECT id FROM {name} WHERE host = 'h1'"
    assert skipped(spark.sql(question)) == 0
    assert spark.sql(f"CALL lake.sys.build_index(table => '{table}')").collect()[0].indexed_files_count == 2
    assert skipped(spark.sql(question)) == 1
    call = f"CALL lake.sys.compact(table => '{table}', order_strategy => 'zorder', order_by => 'host,id')"
    assert spark.sql(call).collect()[0].files_after == 1
    hosts = [row.host for row in spark.sql(f"SELECT host FROM {name}").collect()]
    assert hosts == ["a", "a", "h0", "h1", "z", "z"]


def test_tasks_write_rows_in_the_order_of_the_table(
    spark: SparkSession, lake: Lake, shared_table: Named
) -> None:
    name = shared_table("ordered_events")
    spark.sql(f"CREATE TABLE {name} (id INT, host STRING) TBLPROPERTIES ('clustering.columns' = 'host')")
    hosts = spark.range(0, 400, numPartitions=4).selectExpr(
        "CAST(id AS INT) AS id", "lpad(id * 7919 % 400, 3, '0') AS host"
    )
    hosts.writeTo(name).append()
    table = lake.catalog.load_table(name.removeprefix("lake."))
    files = [each for split in table.scan().splits for each in split.files]
    found = [
        row.host for row in spark.sql(f"SELECT host FROM {name} WHERE host BETWEEN '100' AND '109'").collect()
    ]
    assert found == sorted(found)
    assert len(found) == 10
    if len(files) > 1:
        kept = [each for split in table.scan(predicate=col("host") == "100").splits for each in split.files]
        assert len(kept) == 1


def test_match_finds_what_like_finds_in_scripts_without_blanks(
    spark: SparkSession, lake: Lake, table: Named
) -> None:
    """Spark's own LIKE is the measure, on texts of each script and on mixed ones; by an index or without."""
    chance = Random(35)
    every = [*SCRIPTS.values(), "".join(SCRIPTS.values()), "".join(SCRIPTS.values()) + "aW1-_ \u0301\u3099"]
    texts = [
        "".join(chance.choices(letters, k=chance.randint(1, 14))) for letters in every for _ in range(24)
    ]
    runs = ["".join(chance.choices(letters, k=length)) for letters in every[:-1] for length in (1, 2, 3)]
    cuts = (
        text[at : at + chance.randint(1, 5)]
        for text in texts[:-24]
        if (at := chance.randrange(len(text))) >= 0
    )
    runs = sorted({*runs, *cuts})
    name = table("titles")
    spark.sql(
        f"CREATE TABLE {name} (id INT, title STRING) "
        "TBLPROPERTIES ('index.words.columns' = 'title', 'index.block-rows' = '8')"
    )
    for n in range(0, len(texts), 24):
        rows = [(at, text) for at, text in enumerate(texts[n : n + 24], n)]
        spark.createDataFrame(rows, "id INT, title STRING").coalesce(1).writeTo(name).append()
    spark.createDataFrame([(each,) for each in runs], "run STRING").createOrReplaceTempView("runs")
    question = f"""
        SELECT run, id, lake.sys.match(title, run) AS matched, title LIKE concat('%', run, '%') AS liked
        FROM {name}, runs"""
    pairs = spark.sql(question).where("matched OR liked").collect()
    assert [each for each in pairs if not (each.matched and each.liked)] == []
    liked = {run: [each.id for each in pairs if each.run == run] for run in runs}
    left_out = 0
    for run in runs[::9]:
        frame = spark.sql(f"SELECT id FROM {name} WHERE lake.sys.match(title, '{run}')")
        left_out += skipped(frame)
        assert sorted(row.id for row in frame.collect()) == sorted(liked[run]), run
        assert sorted(
            lake.catalog.load_table(name.removeprefix("lake."))
            .read(predicate=col("title").match(run))["id"]
            .to_pylist()
        ) == sorted(liked[run]), run
    assert left_out > len(runs[::9])
    run = max(runs, key=lambda each: len(liked[each]))
    others = spark.sql(f"SELECT id FROM {name} WHERE NOT lake.sys.match(title, '{run}')").collect()
    assert len(others) == len(texts) - len(liked[run])
