"""Upserts, MERGE and DELETE next to Paimon's own Spark connector, each in a process with the Spark it needs.

Both have a key table of the same rows, buckets and format, compacted. Before each statement both go back to
that state, so that every repetition does the same; the engines take turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from harness import emit, note, ratio
from paimon_spark import Engine, MissingPaimonError, lockgate_engine, paimon_engine

BENCH = "store"
TABLE = "lake.b.keys"
COLUMNS = "id BIGINT NOT NULL, name STRING, price DOUBLE, size INT, changed TIMESTAMP"
# Neither compacts while it writes, which Paimon does if it is not told otherwise: both do the same work.
PROPERTIES = {"ours": "", "theirs": ", 'write-only'='true'"}
ROW = (
    "substr(sha1(cast(id AS STRING)), 1, 12) AS name, cast(id % 8999 + {change} AS DOUBLE) AS price, "
    "cast(id % 71 AS INT) AS size, timestamp_seconds(1700000000 + id + {change}) AS changed"
)
# One in a hundred keys; a tenth of those that are merged is new.
STATEMENTS = {
    "upsert": f"INSERT INTO {TABLE} SELECT * FROM changes WHERE id < {{keys}}",
    "merge": (
        f"MERGE INTO {TABLE} t USING changes s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name, price = s.price, changed = s.changed "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
    "delete": f"DELETE FROM {TABLE} WHERE price % 100 = 7",
}
CHECK = f"SELECT count(*), sum(price), sum(size), max(changed), count(DISTINCT name) FROM {TABLE}"


def versus_paimon(folder: Path, keys: int, repetitions: int) -> None:
    """Print how long each statement takes, relative to Paimon's connector."""
    try:
        engines = _open(folder)
    except MissingPaimonError as error:
        note(f"versus-paimon is left out: {error}")
        return
    try:
        note(f"versus-paimon: {keys:,} keys in 4 buckets; 1 % of them changed by each statement")
        for who, engine in engines.items():
            _make(engine, folder, keys, PROPERTIES[who])
        for name, text in STATEMENTS.items():
            _compare(engines, name, text.format(keys=keys), repetitions)
    finally:
        for engine in engines.values():
            engine.close()


def _open(folder: Path) -> dict[str, Engine]:
    engines = {}
    for name, make in (("theirs", paimon_engine), ("ours", lockgate_engine)):
        scratch = folder / name
        scratch.mkdir(parents=True)
        engines[name] = make(scratch / "lake", scratch, memory="2g")
    return engines


def _make(engine: Engine, folder: Path, keys: int, more: str) -> None:
    """Load the table in an order that is not that of its keys, compact it, and remember the state."""
    changes = folder / "changes"
    if not changes.exists():
        new = f"SELECT {keys} + id AS id FROM range({keys // 1000})"
        ids = f"SELECT id FROM range(0, {keys}, 100) UNION ALL {new}"
        engine.run(
            f"INSERT OVERWRITE DIRECTORY '{changes}' USING orc SELECT id, {ROW.format(change=1)} FROM ({ids})"
        )
    engine.run(f"CREATE OR REPLACE TEMP VIEW changes USING orc OPTIONS (path '{changes}')")
    engine.run("CREATE NAMESPACE IF NOT EXISTS lake.b")
    properties = f"'primary-key'='id', 'bucket'='4', 'file.format'='orc'{more}"
    engine.run(f"CREATE TABLE {TABLE} ({COLUMNS}) TBLPROPERTIES ({properties})")
    ids = f"SELECT pmod(id * 7919, {keys}) AS id FROM range({keys})"
    engine.run(f"INSERT INTO {TABLE} SELECT id, {ROW.format(change=0)} FROM ({ids})")
    engine.run("CALL lake.sys.compact(table => 'b.keys', compact_strategy => 'full')")
    engine.run("CALL lake.sys.create_tag(table => 'b.keys', tag => 'loaded')")


def _compare(engines: Mapping[str, Engine], name: str, statement: str, repetitions: int) -> None:
    seconds: dict[str, list[float]] = {who: [] for who in engines}
    for repetition in range(-1, repetitions):
        for who in list(engines) if repetition % 2 == 0 else reversed(list(engines)):
            engines[who].run("CALL lake.sys.rollback(table => 'b.keys', version => 'loaded')")
            took = engines[who].run(statement)
            if repetition >= 0:
                seconds[who].append(took)
        if repetition < 0:
            _check(engines, name)
    shown = {who: f"{median(times):.2f} s" for who, times in seconds.items()}
    note(f"{name}: ours {shown['ours']}, theirs {shown['theirs']}")
    value = ratio(seconds["ours"], seconds["theirs"])
    emit(BENCH, f"{name}_vs_paimon", value, "x", "Paimon's own Spark connector; the goal: 1.0")


def _check(engines: Mapping[str, Engine], name: str) -> None:
    found = {who: engine.read(CHECK).to_pylist() for who, engine in engines.items()}
    if found["ours"] != found["theirs"]:
        raise AssertionError(f"after {name} the tables differ: {found}")
