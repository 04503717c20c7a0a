"""One random history by its seed: tables, changes, queries, confs; what differs, and what leads there."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.changes import Changes
from fuzz.kinds import KINDS
from fuzz.layouts import random_layout
from fuzz.plain import Plain
from fuzz.queries import Queries
from fuzz.world import DifferenceError, Query, World

if TYPE_CHECKING:
    from lockgate import Lake

CONFS = {
    "spark.sql.ansi.enabled": ("true", "true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.codegen.wholeStage": ("true", "true", "false"),
    "spark.sql.codegen.factoryMode": ("FALLBACK", "NO_CODEGEN"),
    "spark.sql.autoBroadcastJoinThreshold": ("10485760", "-1"),
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ("true", "false"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": ("true", "false"),
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": ("10GB", "0"),
    "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled": ("true", "true", "false"),
    "spark.sql.sources.v2.bucketing.enabled": ("true", "false"),
    "spark.sql.cbo.enabled": ("false", "true"),
    "spark.sql.shuffle.partitions": ("1", "2", "5"),
}
TOGETHER = 6


@dataclass
class Report:
    """What one seed led to."""

    seed: int
    statements: int = 0
    comparisons: int = 0
    differences: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


def seed_of_today() -> int:
    """A seed that is another one each day: the date as a number."""
    return int(datetime.now(UTC).strftime("%Y%m%d"))


def fuzz(
    lake: Lake, folder: Path, seed: int, steps: int, kinds: Sequence[str] = tuple(KINDS), stop: int = 1
) -> Report:
    """Run one history: `steps` changes with queries between them; ends after `stop` differences."""
    report = Report(seed)
    confs = {name: lake.spark.conf.get(name) for name in CONFS}
    database = f"fuzz_{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(database)
    world = World(lake, database, Plain(lake.spark, folder / database), report.log.append)
    try:
        for step in _steps(random.Random(seed), world, kinds, steps):
            try:
                step.work()
            except DifferenceError as difference:
                report.differences.append(str(difference))
                if step.changes or len(report.differences) >= stop:
                    break
    finally:
        for name, value in confs.items():
            lake.spark.conf.set(name, value)
        report.statements, report.comparisons = world.statements, world.comparisons
        world.end()
        lake.catalog.drop_namespace(database, cascade=True)
    return report


@dataclass(frozen=True)
class Step:
    """Something to do; after a difference in one that changes tables the two sides are apart for good."""

    work: Callable[[], object]
    changes: bool = False


def _steps(pick: random.Random, world: World, kinds: Sequence[str], steps: int) -> Iterator[Step]:
    for _ in range(2):
        layout = random_layout(pick, kinds)
        yield Step(lambda layout=layout: world.create(layout), changes=True)
    changes, queries = Changes(pick, world, kinds), Queries(pick, world)
    for at in (0, 0, 1):
        statement = changes.insert(at)
        yield Step(lambda statement=statement: world.change(statement), changes=True)
    for _ in range(steps):
        if pick.random() < 0.3:
            name = pick.choice(list(CONFS))
            value = pick.choice(CONFS[name])
            yield Step(lambda name=name, value=value: world.conf(name, value))
        statement = changes.next()
        yield Step(lambda statement=statement: world.change(statement), changes=True)
        yield Step(lambda at=statement.at: world.check_rows(at), changes=True)
        if pick.random() < 0.6:
            yield from _asked(pick, world, queries)


def _asked(pick: random.Random, world: World, queries: Queries) -> Iterator[Step]:
    at = pick.randrange(len(world.tables))
    conditions = queries.filters(at, TOGETHER)
    yield Step(lambda: ask_together(world, at, conditions))
    for _ in range(3):
        query = queries.next()
        yield Step(lambda query=query: world.compare(query))


def ask_together(world: World, at: int, conditions: Sequence[str]) -> None:
    """Ask for the rows of several conditions in one query; one by one if that differs."""
    parts = [f"SELECT {index} AS q, id FROM {{t}} WHERE {each}" for index, each in enumerate(conditions)]
    try:
        world.compare(Query(at, " UNION ALL ".join(parts)))
        world.comparisons += len(conditions) - 1
    except DifferenceError:
        for each in conditions:
            world.compare(Query(at, f"SELECT id FROM {{t}} WHERE {each}"))
        raise
