"""A compaction along Hilbert's curve by Spark's tasks, next to one by the driver's process alone."""

from __future__ import annotations

import re
from pathlib import Path

from harness import emit, note, timed
from sessions import open_lake

from lockgate import Lake

BENCH = "index"
COLUMNS = "id, id * 7919 % 99991 AS a, id * 104729 % 49999 AS b, concat('host-', id * 31 % 5003) AS host"
ORDER = "order_strategy => 'hilbert', order_by => 'a,b,host', options => 'target-file-size=16 mb'"
ENGINES = ("spark", "python")


def measure(folder: Path, rows: int) -> None:
    """Print rows a second of each engine, the peaks of the driver's processes, and what bounds leave out.

    Here the driver's JVM is the executor too. Spark goes first: a peak is that of all before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lake = open_lake(folder, memory="3g")
    try:
        for engine in ENGINES:
            _measure(lake, rows, engine)
    finally:
        lake.spark.stop()


def _measure(lake: Lake, rows: int, engine: str) -> None:
    name = f"b.by_{engine}"
    lake.sql(f"CREATE TABLE lake.{name} AS SELECT {COLUMNS} FROM range({rows})")
    call = f"CALL lake.sys.compact('{name}', {ORDER}, order_engine => '{engine}')"
    before = _peak_mb("self")
    found = []
    took = timed(lambda: found.extend(lake.sql(call).collect()))
    (row,) = found
    note(f"{engine}: {row.files_after} files, {took:.1f} s, python's peak before {before:.0f} MB")
    emit(BENCH, f"hilbert_{engine}_rows_per_s", rows / took, "rows/s")
    emit(BENCH, f"hilbert_{engine}_python_peak_mb", _peak_mb("self"), "MB")
    jvm = lake.spark.sparkContext._gateway.proc.pid
    emit(BENCH, f"hilbert_{engine}_jvm_peak_mb", _peak_mb(str(jvm)), "MB")
    emit(BENCH, f"hilbert_{engine}_pruned_share", row.pruned_share_after, "ratio", row.pruned_share_bound)


def _peak_mb(process: str) -> float:
    """Return the largest resident size of a process up to now."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    if found is None:
        raise RuntimeError("this system does not tell the peak of a process's memory in /proc")
    return int(found[1]) / 1000
