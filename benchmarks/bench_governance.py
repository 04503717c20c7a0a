#!/usr/bin/env python3
"""Policies at scale, and what they cost queries: the time to load many, to decide about a table, to query.

`policy_load_s` is the time from parsed JSON to an engine, `policy_table_ms` and `policy_table_p95_ms` that of
one table with 50 columns (access, masks and the row filter) that was not asked before: nothing is cached.
Every tenth policy has wildcards in the names of databases and tables. `policy_rss_mb` is the memory of the
whole process, with the policies as JSON.

In Spark, taken in turn with the same without policies: `governed_statement_ms` is what they add to the plan
of a query of two tables with row filters and masks, `governed_overhead_ratio` the time of TPC-H under them
next to views that hide the same. The `open` figures are those of a user who sees everything.
`ungoverned_ratio` is the time of a plan in a session with Lockgate's rules and no policies, next to one of
plain Spark.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import describe_machine, emit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from ranger_world import definition

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.table_decision import decide_table

# The time of this process alone, so that others on the machine count less.
clock = time.process_time
COLUMNS = ["ssn", *(f"c{number}" for number in range(1, 50))]
PARTS = ("scale", "ungoverned", "statement", "tpch")
DATABASES, TABLES, WILD = 200, 4, 18


def policy(rnd: random.Random, number: int) -> dict[str, Any]:
    """Return one of many: of 20, two with wildcards, one mask, one row filter, one denial."""
    kind = number % 20
    columns = ["*"] if kind < 12 else [rnd.choice(["ssn", "email", "s*", "name"])]
    wild = kind >= WILD
    resources = {
        "catalog": {"values": ["lake"]},
        "database": {"values": [f"db{number % 20}*" if wild else f"db{number % DATABASES}"]},
        "table": {"values": [f"table_{number % 100}*" if wild else f"table_{number // TABLES}"]},
        "column": {"values": columns},
    }
    item = {
        "accesses": [{"type": "select"}],
        "users": [f"u{number % 500}"],
        "groups": [f"g{number % 50}", "analysts"],
    }
    document: dict[str, Any] = {"id": number, "name": f"p{number}", "resources": resources}
    if kind == 17:
        return {
            **document,
            "policyType": 1,
            "dataMaskPolicyItems": [{**item, "dataMaskInfo": {"dataMaskType": "MASK"}}],
        }
    if kind == 16:
        del resources["column"]
        row_filter = {**item, "rowFilterInfo": {"filterExpr": "region = 'x'"}}
        return {**document, "policyType": 2, "rowFilterPolicyItems": [row_filter]}
    denials = [{**item, "groups": []}] if kind == 3 else []
    return {**document, "policyItems": [item], "denyPolicyItems": denials}


def asked(number: int) -> RangerRequest:
    names = {"catalog": "lake", "database": f"db{number % DATABASES}", "table": f"table_{number // TABLES}"}
    return RangerRequest(resource=names, access="select", user="zoe", groups=frozenset(["analysts"]))


def at_scale(policies: int, tables: int) -> None:
    """Load, decide, and print."""
    rnd = random.Random(1)
    document = {
        "serviceDef": definition(),
        "policies": [policy(rnd, number) for number in range(policies)],
    }
    start = clock()
    engine = Engine(document)
    emit("governance", "policy_load_s", clock() - start, "s")
    spent = []
    for number in rnd.sample(range(policies), tables):
        start = clock()
        decide_table(engine, asked(number), COLUMNS)
        spent.append(1000 * (clock() - start))
    spent.sort()
    emit("governance", "policy_table_ms", spent[len(spent) // 2], "ms")
    emit("governance", "policy_table_p95_ms", spent[len(spent) * 95 // 100], "ms")
    emit("governance", "policy_rss_mb", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB")


def in_spark(parts: set[str], scale: float, rounds: int) -> None:
    """Measure queries and print."""
    from governed import statements, tpch
    from governed.world import World
    from sessions import open_lake

    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-governance-"))
    lake = open_lake(folder)
    try:
        world = World(lake, folder, {**statements.HIDING, **tpch.limits()})
        statements.make_tables(lake)
        if "ungoverned" in parts:
            statements.without_policies(lake, folder, 3 * rounds)
        if "statement" in parts:
            statements.plans(lake, world, 3 * rounds)
        if "tpch" in parts:
            tpch.tpch(lake, world, folder, scale, rounds)
    finally:
        lake.spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Measure everything, or what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--policies", type=int, default=50_000)
    parser.add_argument("--tables", type=int, default=2_000)
    parser.add_argument("--scale", type=float, default=1, help="scale of TPC-H (default 1, about 1 GB)")
    parser.add_argument("--rounds", type=int, default=5, help="runs behind each figure of Spark")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    arguments = parser.parse_args()
    describe_machine()
    if "scale" in arguments.only:
        at_scale(arguments.policies, arguments.tables)
    if rest := set(arguments.only) - {"scale"}:
        in_spark(rest, arguments.scale, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
