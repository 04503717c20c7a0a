"""Maintenance by CALL, queries with their push-down explained, and a reader who has no key."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.errors import PySparkException

import lockgate
from flights.checks import check_masks, everything
from flights.story import Call, Funnel, Step, Story
from flights.wording import counted, counts
from lockgate import Lake
from lockgate.errors import LockgateError

TABLES = ("planes", "airports", "airlines", "weather", "enriched")
SHOWN = ("tailnum", "manufacturer", "model", "seats", "engine")


def call(lake: Lake, sql: str, story: Story) -> None:
    """Run a CALL, note what it says it did, and print it."""
    started = time.monotonic()
    (row,) = lake.sql(sql).collect()
    result = row.asDict()
    story.calls.append(Call(sql, result, time.monotonic() - started))
    print(f"  {sql}\n    -> {counts(result)}")


def maintain(lake: Lake, story: Story) -> None:
    """Compact and expire; the rows must be the same afterwards."""
    names = [f"lake.flights.{name}" for name in TABLES]
    before = everything(lake.spark, names)
    for table in ("planes", "weather", "enriched"):
        call(lake, f"CALL lake.sys.compact(table => 'flights.{table}')", story)
    for table in ("planes", "enriched"):
        call(
            lake,
            f"CALL lake.sys.expire_snapshots(table => 'flights.{table}', retain_max => 2, retain_min => 1)",
            story,
        )
    changed = [name for name, rows in everything(lake.spark, names).items() if rows != before[name]]
    story.check(
        "compact and expire_snapshots changed no row",
        not changed,
        f"{len(names)} tables" if not changed else f"changed: {', '.join(changed)}",
    )
    kept = len(lake.catalog.load_table("flights.enriched").snapshots())
    story.check("old snapshots are gone", kept <= 2, f"enriched keeps {kept}")


def queries(lake: Lake, staged: Sequence[Path], plane: str, story: Story) -> None:
    """Run three queries, explain their push-down, and compare the answers with Spark's on plain Parquet."""
    lake.spark.read.parquet(*(str(path) for path in staged)).createOrReplaceTempView("plain_flights")
    asked = [
        (
            "One month, one destination",
            "SELECT count(*) AS flights, sum(arr_delay) AS delay FROM {enriched} "
            "WHERE month = 7 AND dest = 'SFO'",
        ),
        (
            "A range of flights",
            "SELECT carrier, count(*) AS flights FROM {enriched} WHERE flight_id BETWEEN 100000 AND 100999 "
            "GROUP BY carrier",
        ),
    ]
    for title, sql in asked:
        rows = query(lake, title, sql.format(enriched="lake.flights.enriched"), story)
        expected = lake.sql(sql.format(enriched="plain_flights")).collect()
        found = f"{counted(len(rows), 'row')}, as Spark finds in the plain files"
        story.check_equal(f"query: {title.lower()}", sorted(rows), sorted(expected), found)
    rows = query(
        lake, "One plane", f"SELECT tailnum, seats FROM lake.flights.planes WHERE tailnum = '{plane}'", story
    )
    everyone = lake.catalog.load_table("flights.planes").read(columns=["tailnum", "seats"]).to_pylist()
    wanted = [(row["tailnum"], row["seats"]) for row in everyone if row["tailnum"] == plane]
    found = f"{counted(len(rows), 'row')}, as Python reads the table"
    story.check_equal("query: one plane", [tuple(row) for row in rows], wanted, found)


def query(lake: Lake, title: str, sql: str, story: Story) -> list[object]:
    """Run a query, note what push-down left of it, print that and return the rows."""
    (report,) = lake.explain_pushdown(sql)
    started = time.monotonic()
    rows = lake.sql(sql).collect()
    seconds = time.monotonic() - started
    steps = [Step(f"files, {step.name}", step.after.files, report.total.files) for step in report.steps]
    steps.append(Step("bytes", report.kept.bytes, report.total.bytes))
    funnel = Funnel(
        title=title,
        sql=sql,
        steps=steps,
        accepted=report.accepted,
        skipping=report.skipping,
        remaining=[text for text, _ in report.remaining],
        columns=report.all_columns if report.columns is None else report.columns,
        rows=len(rows),
        seconds=seconds,
    )
    story.funnels.append(funnel)
    print(f"  {sql}\n" + "\n".join(f"    {text}" for text in report.render().splitlines()))
    return rows


def without_key(lake: Lake, folder: Path) -> Lake:
    """A second catalog on the same folder, in the same session, that has no key."""
    return lockgate.connect(folder / "lake", spark=lake.spark, catalog="public")


def keyless(lake: Lake, public: Lake, story: Story) -> None:
    """Read planes with and without the key."""
    chosen = f"SELECT {', '.join(SHOWN)} FROM {{}}.flights.planes ORDER BY tailnum"
    opened = [tuple(row) for row in lake.sql(chosen.format("lake")).collect()]
    masked = [tuple(row) for row in public.sql(chosen.format("public")).collect()]
    wrong = check_masks(opened, masked, SHOWN)
    story.check(
        "a reader without the key sees exactly the declared masks",
        not wrong,
        f"{len(masked)} planes" if not wrong else "; ".join(wrong[:3]),
    )
    story.columns, story.with_key, story.without_key = SHOWN, list(opened[:5]), list(masked[:5])
    for name, rows in (("with the key", opened), ("without it", masked)):
        print(f"  {name}: {', '.join(str(value) for value in rows[0])}")


def check_refusal(public: Lake, story: Story) -> None:
    """Try to compact without the key, when there is something to compact: it must be refused."""
    refused, detail = try_compact(public)
    print(f"  without the key: {detail}")
    story.check("compact without the key is refused, and no file changes", refused, detail)


def try_compact(public: Lake) -> tuple[bool, str]:
    """Whether a rewrite without the key is refused and leaves every file of the table as it was, and how."""
    location = Path(public.catalog.load_table("flights.planes").location.removeprefix("file://"))
    before = contents(location)
    try:
        public.sql("CALL public.sys.compact(table => 'flights.planes')").collect()
    except (LockgateError, PySparkException) as error:
        same = contents(location) == before
        # Where the lake lies this time is of no interest to anyone who reads the page.
        first = str(error).splitlines()[0].replace(str(location.parents[1]), "lake")
        return same, first if same else f"files changed although it failed: {first}"
    return False, "it ran"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
