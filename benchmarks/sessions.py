"""The Spark session that benchmarks run in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import lockgate
from lockgate import Lake
from lockgate.framework.keys import create_key_file


def open_lake(
    folder: Path,
    memory: str = "2g",
    keys: Sequence[str] = (),
    jars: Sequence[Path] = (),
    master: str = "local[2]",
    more: Mapping[str, str] | None = None,
) -> Lake:
    """A quiet session on two cores, with the warehouse `folder/lake`, a database `b` and new master keys."""
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Small files come in a part a core too, as what is read from the partitions of a topic does.
        "spark.sql.files.openCostInBytes": "64k",
        # Queries that wait for their turn do not look for work all the time.
        "spark.sql.streaming.pollingDelay": "100ms",
        **(more or {}),
    }
    if jars:
        conf["spark.jars"] = ",".join(map(str, jars))
    held = None
    if keys:
        create_key_file(str(folder / "keys.json"), keys)
        held = f"file:{folder / 'keys.json'}"
    lake = lockgate.connect(folder / "lake", keys=held, master=master, conf=conf, app_name="bench")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.b")
    return lake
