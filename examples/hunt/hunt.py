#!/usr/bin/env python3
"""Events stream from a topic into a table with indexes, and three hunts search it after every few batches.

`python examples/hunt/hunt.py [FOLDER]` runs it. Each hunt is compared with all rows of the same snapshot.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming import StreamingQuery

import lockgate
from lockgate import Lake

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from hunt import topic as topics
from hunt.events import TOOL, batches, indicator

# Workers have no folder of this example: they get its classes by value.
cloudpickle.register_pickle_by_value(topics)

INDICATORS = [indicator(number) for number in range(1000)]
LIST = ", ".join(f"'{each}'" for each in INDICATORS)
HUNTS = {
    "one hash": f"md5 = '{indicator(3)}'",
    "a thousand hashes": f"md5 IN ({LIST})",
    "the name of a tool": f"command LIKE '%{TOOL}%'",
}
# The same in Python, by which the answers are checked.
IS_HUNTED: dict[str, Callable[[Row], bool]] = {
    "one hash": lambda row: row.md5 == indicator(3),
    "a thousand hashes": lambda row: row.md5 in INDICATORS,
    "the name of a tool": lambda row: TOOL in row.command,
}


@dataclass(frozen=True)
class Sighting:
    """What a hunt found in a snapshot: the events, those of a full scan, and the files read and skipped."""

    hunt: str
    snapshot: int
    found: int
    truth: int
    read: int
    skipped: int


def run(
    lake: Lake, folder: Path, table: str = "hunt.events", count: int = 24, size: int = 200, every: int = 6
) -> list[Sighting]:
    """Stream batches of events into the table, and hunt after `every` so many; return what was found."""
    topic = topics.Topic(folder / "topic")
    topic.create()
    name = f"{lake.name}.{table}"
    lake.sql(
        f"CREATE TABLE {name} ({topics.COLUMNS}) TBLPROPERTIES "
        "('index.values.columns' = 'host,md5', 'index.ngrams.columns' = 'command')"
    )
    query = _stream(lake, topic, name, folder / "checkpoint")
    sightings: list[Sighting] = []
    try:
        for number, events in enumerate(batches(count, size), 1):
            topic.send(events)
            query.processAllAvailable()
            if number % every == 0:
                sightings += [_hunt(lake, table, name, hunt) for hunt in HUNTS]
    finally:
        query.stop()
    return sightings


def _stream(lake: Lake, topic: topics.Topic, name: str, checkpoint: Path) -> StreamingQuery:
    lake.spark.dataSource.register(topics.TopicSource)
    events = lake.spark.readStream.format("topic").option("path", str(topic.folder)).load()
    return events.writeStream.option("checkpointLocation", str(checkpoint)).toTable(name)


def _hunt(lake: Lake, table: str, name: str, hunt: str) -> Sighting:
    """Search the newest snapshot, which stays the same while the stream writes on."""
    newest = lake.catalog.load_table(table).latest_snapshot()
    assert newest is not None, "batches were written"
    snapshot = newest.id
    condition = HUNTS[hunt]
    found = lake.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot} WHERE {condition}").collect()
    rows = lake.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}").collect()
    truth = sum(IS_HUNTED[hunt](row) for row in rows)
    (report,) = lake.explain_pushdown(f"SELECT * FROM {name} VERSION AS OF {snapshot} WHERE {condition}")
    read = report.kept.files
    return Sighting(hunt, snapshot, len(found), truth, read, report.total.files - read)


def main() -> int:
    """Run the hunt in a folder and print what was found; 1 if a hunt missed something."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="hunt-"))
    lake = lockgate.connect(str(folder / "lake"), master="local[2]", conf={"spark.ui.enabled": "false"})
    lake.sql("CREATE NAMESPACE lake.hunt")
    sightings = run(lake, folder)
    for each in sightings:
        print(
            f"snapshot {each.snapshot:3}  {each.hunt:20} {each.found:3} events of {each.truth}, "
            f"{each.read} files read, {each.skipped} skipped"
        )
    lake.spark.stop()
    return 0 if all(each.found == each.truth for each in sightings) else 1


if __name__ == "__main__":
    sys.exit(main())
