#!/usr/bin/env python3
"""Random tables, changes and queries in SQL, against plain Spark on Parquet and a model of tables.

Every fifth history is one of lookup joins, against joins with VERSION AS OF. Runs seed after seed until
`--minutes` are over. JSON lines: one for each seed with differences, with the statements that lead there,
and at the end the figures. Ends with 1 if there was a difference. The first seed is the date; `--seed`,
`--steps` and `--only` repeat one that is printed.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import describe_machine, emit, note

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

if TYPE_CHECKING:
    from lockgate import Lake

STEPS = 25
# Seeds of one day are this far apart from those of the next.
SEEDS_A_DAY = 100_000
LOOKUPS_EVERY = 5


def main() -> int:
    """Fuzz for the time that is asked for."""
    from fuzz.kinds import KINDS

    arguments = _arguments()
    describe_machine()
    # Statements that must fail are meant; pyspark would log each with its stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    kinds = [kind for kind in KINDS if kind.partition("(")[0].partition("<")[0] not in arguments.without]
    with tempfile.TemporaryDirectory(prefix="lockgate-fuzz-", ignore_cleanup_errors=True) as folder:
        return _run(Path(folder), arguments, kinds)


def _run(folder: Path, arguments: argparse.Namespace, kinds: list[str]) -> int:
    from sessions import open_lake

    lake = open_lake(folder, keys=["pii"])
    ends = time.monotonic() + arguments.minutes * 60
    figures = {"histories": 0, "statements": 0, "comparisons": 0, "differences": 0}
    seed = arguments.seed
    try:
        while time.monotonic() < ends and figures["histories"] != arguments.histories:
            for name, figure in _history(lake, folder, seed, arguments, kinds).items():
                figures[name] += figure
            seed += 1
    finally:
        lake.spark.stop()
    for name, figure in figures.items():
        emit("fuzz", name, figure, name, 0 if name == "differences" else None)
    return 1 if figures["differences"] else 0


def _history(
    lake: Lake, folder: Path, seed: int, arguments: argparse.Namespace, kinds: list[str]
) -> dict[str, int]:
    from fuzz.lookups import fuzz_lookups
    from fuzz.run import fuzz

    what = arguments.only or ("sql" if (seed + 1) % LOOKUPS_EVERY else "lookups")
    if what == "lookups":
        report: Any = fuzz_lookups(lake, folder / "lookups", seed, arguments.steps)
    else:
        report = fuzz(lake, folder / "plain", seed, arguments.steps, kinds, arguments.differences)
    comparisons, differences = report.comparisons, len(report.differences)
    note(f"seed {seed} ({what}): {comparisons} comparisons, {differences} differences")
    if differences:
        found = {"seed": seed, "only": what, "steps": arguments.steps, "differences": report.differences}
        print(json.dumps({"bench": "fuzz", **found, "log": report.log}), flush=True)
    done = {"histories": 1, "statements": len(report.log)}
    return done | {"comparisons": comparisons, "differences": differences}


def _arguments() -> argparse.Namespace:
    from fuzz.run import seed_of_today

    parser = argparse.ArgumentParser(prog="./dev bench fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15, help="how long (default 15)")
    parser.add_argument("--seed", type=int, default=seed_of_today() * SEEDS_A_DAY, help="the first seed")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"changes of a history (default {STEPS})")
    parser.add_argument("--histories", type=int, help="no more than this many seeds")
    parser.add_argument("--only", choices=("sql", "lookups"), help="histories of one sort only")
    parser.add_argument("--differences", type=int, default=3, help="of a history; then the next (default 3)")
    parser.add_argument("--without", nargs="+", default=[], metavar="TYPE", help="types to leave out")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
