"""TPC-H under policies, next to the same queries without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from harness import emit, note, ratio
from tpch.queries import QUERIES
from tpch.tables import generate, load, query

from governed.statements import BENCH
from governed.world import LIMITED, OPEN, Limits, Took, World
from lockgate import Lake

DATABASE = "tpch_governed"
# Conditions that hold for all rows, and masks of columns that no query shows: answers stay those of TPC-H.
HIDING: Mapping[str, Limits] = {
    "region": Limits(masked=("r_comment",)),
    "nation": Limits(masked=("n_comment",)),
    "supplier": Limits("s_suppkey > 0", ()),
    "customer": Limits("c_custkey > 0", ()),
    "part": Limits("p_partkey > 0", ("p_comment",)),
    "partsupp": Limits("ps_availqty >= 0", ("ps_comment",)),
    "orders": Limits("o_orderkey > 0", ("o_clerk",)),
    "lineitem": Limits("l_orderkey > 0", ("l_comment",)),
}


def limits() -> dict[str, Limits]:
    """Return what is hidden, by full names."""
    return {f"lake.{DATABASE}.{name}": each for name, each in HIDING.items()}


def tpch(lake: Lake, world: World, folder: Path, scale: float, rounds: int) -> None:
    """Print the time of all queries under policies, in ratio to the same queries without them.

    For a user whom policies hide nothing from the baseline is the query on the tables. For one from whom they
    hide something it is the query on views that hide the same.
    """
    note(f"tpch: generating scale {scale:g}")
    generate(folder / "tpch", scale)
    lake.sql(f"CREATE NAMESPACE lake.{DATABASE}")
    names = load(lake, folder / "tpch", DATABASE, encrypted=False)
    views = {name: _view(lake, name, full) for name, full in names.items()}
    totals: dict[str, float] = {}
    processor: dict[str, float] = {}
    for number in QUERIES:
        for name, took in _times(lake, world, number, names, views, scale, rounds).items():
            # Of the quickest rounds: the work of others on the machine only adds.
            totals[name] = totals.get(name, 0.0) + min(each.wall for each in took)
            processor[name] = processor.get(name, 0.0) + median(each.processor for each in took)
    for name, metric, other in (
        ("limited", "governed_overhead_ratio", "by hand"),
        ("open", "governed_open_overhead_ratio", "off"),
    ):
        baseline = f"{other}: {totals[other]:.2f} s for {len(QUERIES)} queries"
        emit(BENCH, metric, totals[name] / totals[other], "ratio", baseline)
        baseline = f"{other}: {processor[other]:.2f} s of processors, medians"
        emit(BENCH, f"{metric}_of_processors", processor[name] / processor[other], "ratio", baseline)


def _view(lake: Lake, name: str, full: str) -> str:
    limit = HIDING[name]
    lake.sql(limit.query(full, lake.spark.table(full).columns)).createOrReplaceTempView(f"hand_{name}")
    return f"hand_{name}"


def _times(
    lake: Lake,
    world: World,
    number: int,
    names: Mapping[str, str],
    views: Mapping[str, str],
    scale: float,
    rounds: int,
) -> dict[str, list[Took]]:
    text, by_hand = query(number, names, scale), query(number, views, scale)
    functions: dict[str, Callable[[], object]] = {
        "off": lambda: lake.sql(text).collect(),
        "open": lambda: world.sessions[OPEN].sql(text).collect(),
        "limited": lambda: world.sessions[LIMITED].sql(text).collect(),
        "by hand": lambda: lake.sql(by_hand).collect(),
    }
    found = world.times(functions, rounds)
    for name, other in (("limited", "by hand"), ("open", "off")):
        walls = {key: [took.wall for took in found[key]] for key in (name, other)}
        each = ratio(walls[name], walls[other])
        note(f"tpch: query {number} {name} {each:.3f} of {median(walls[other]):.3f} s {other}")
    return found
