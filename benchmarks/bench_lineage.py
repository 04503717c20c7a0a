#!/usr/bin/env python3
"""The figures of lineage: ingest of edges in any order, traces of ten hops, a page in a browser, and what
recording costs Spark.

Each is one JSON line on standard output. `--tables` makes the graph smaller: 20 layers of so many tables.
`--only` takes one part: graph or capture.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from harness import describe_machine, emit, note
from lineage_page import BLANK, opened_in_a_running_browser

from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Run, Shape
from lockgate.framework.lineage.answer import Edge
from lockgate.framework.lineage.export.graph_page import page
from lockgate.framework.lineage.model.edge_kinds import DIRECT
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import Vertex
from lockgate.framework.lineage.store.journal import lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments

LAYERS, COLUMNS, HOPS = 20, 20, 10
PAGE_TABLES = 5_000
SHAPES_A_SEGMENT = 500
STARTS = 100
_TRIES = 10


def main() -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(prog="./dev bench lineage", description=__doc__)
    parser.add_argument("--tables", type=int, default=1100, help="tables in each of 20 layers (default 1100)")
    parser.add_argument("--only", choices=("graph", "capture"), help="one part of the figures")
    parser.add_argument("--rounds", type=int, default=9, help="pairs of runs with and without (default 9)")
    parser.add_argument("--statements", type=int, default=40, help="small statements a round (default 40)")
    parser.add_argument("--batches", type=int, default=112, help="batches a stream and round (default 112)")
    arguments = parser.parse_args()
    describe_machine()
    if arguments.only != "capture":
        _graph(arguments.tables)
    if arguments.only != "graph":
        from lineage_capture import measure

        measure(arguments.rounds, arguments.statements, arguments.batches)
    return 0


def _graph(tables: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-lineage-"))
    try:
        chance = random.Random(7)
        segments = Segments(LocalFileSystem(), str(folder / "lake"))
        edges = _write(segments, chance, tables)
        index = Index(segments, folder / "index")
        started = time.perf_counter()
        index.refresh()
        emit("lineage", "ingest_edges_per_s", edges / (time.perf_counter() - started), "edges/s", 50_000)
        bytes_of_files = sum(path.stat().st_size for path in (folder / "index").iterdir())
        emit("lineage", "index_bytes", bytes_of_files, "bytes")
        _trace(index, chance, tables)
        _page(folder / "page.html", chance)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(segments: Segments, chance: random.Random, tables: int) -> int:
    """Write the statements in a random order; return the number of edges."""
    order = [(layer, number) for layer in range(1, LAYERS) for number in range(tables)]
    chance.shuffle(order)
    shapes = [_shape(chance, layer, number, tables) for layer, number in order]
    for at in range(0, len(shapes), SHAPES_A_SEGMENT):
        part = shapes[at : at + SHAPES_A_SEGMENT]
        segments.write(lines_of((shape, [Run(at, at + 1, rows=1)]) for shape in part))
    edges = sum(len(shape.edges) for shape in shapes)
    note(f"{edges:,} edges of {len(shapes):,} statements")
    return edges


def _shape(chance: random.Random, layer: int, number: int, tables: int) -> Shape:
    inputs = tuple(
        _table(chance.randrange(max(0, layer - 2), layer), chance.randrange(tables)) for _ in range(3)
    )
    edges = {
        (f"c{column}", chance.randrange(3), f"c{chance.randrange(COLUMNS)}", 1)
        for column in range(COLUMNS)
        for _ in range(chance.choices((1, 2, 12), (70, 20, 10))[0])
    }
    return Shape("INSERT", _table(layer, number), inputs, tuple(edges))


def _table(layer: int, number: int) -> Dataset:
    return Dataset.table(f"l{layer}", f"t{number}")


def _trace(index: Index, chance: random.Random, tables: int) -> None:
    with index.reading() as database:
        for direction, layers in (("back", (18, 19)), ("forward", (0, 1))):
            names = [f"l{chance.choice(layers)}.t{chance.randrange(tables)}" for _ in range(STARTS)]
            starts = [row[0] for name in names for row in database.execute(_ONE, (name,))]
            times, sizes = [], []
            for start in starts:
                started = time.perf_counter()
                found = trace(database, [start], direction, kinds=int(DIRECT), depth=HOPS)
                times.append((time.perf_counter() - started) * 1000)
                sizes.append(len(found.fields))
            note(f"{direction}: vertices at the median {median(sizes):.0f}, at most {max(sizes):,}")
            prefix = "trace" if direction == "back" else "trace_forward"
            emit("lineage", f"{prefix}_p50_ms", median(times), "ms", 10)
            emit("lineage", f"{prefix}_p95_ms", quantiles(times, n=20)[-1], "ms", 60)


def _page(path: Path, chance: random.Random) -> None:
    """Open a page of 5,000 tables in a browser, from the address to the drawn picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        note("no chromium on this host: the page is not opened")
        return
    edges = [edge for number in range(1, PAGE_TABLES) for edge in _edges_into(chance, number)]
    starts = [_vertex(PAGE_TABLES // 2, column) for column in range(8)]
    path.write_text(page(f"db.t{PAGE_TABLES // 2}", edges, starts))
    blank = path.with_name("blank.html")
    blank.write_text(BLANK)
    for name, millis in opened_in_a_running_browser(browser, path).items():
        emit("lineage", name, millis, "ms", 100 if name == "page_open_ms" else None)
    times: dict[str, list[float]] = {"blank": [], "page": []}
    for _ in range(7):  # one after the other, so that other work on this host meets both
        times["blank"].append(_first_picture(browser, blank))
        times["page"].append(_first_picture(browser, path))
    for name, each in times.items():
        emit("lineage", f"{name}_in_a_new_browser_ms", median(each), "ms")


def _first_picture(browser: str, path: Path) -> float:
    """Return the milliseconds from the address to the picture in a browser that starts with this page."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()]
    for _ in range(_TRIES):
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r' data-opened="(\d+)"', shown[:300])
        if found:  # else the browser ended before its first picture, as it does under load
            return float(found[1])
    raise RuntimeError(f"the browser showed no picture of {path} in {_TRIES} tries")


def _edges_into(chance: random.Random, number: int) -> list[Edge]:
    process = {"id": number, "kind": "INSERT", "count": 1, "failed": 0, "last": 1, "opaque": (), "run": {}}
    sources = [chance.randrange(max(0, number - 300), number) for _ in range(3)]
    return [
        Edge(1, "back", _vertex(chance.choice(sources), chance.randrange(8)), _vertex(number, c), 1, process)
        for c in range(8)
    ]


def _vertex(table: int, column: int) -> Vertex:
    return Vertex(table, "", f"db{table % 40}.t{table}", "table", f"c{column}", 1, 1, "", is_dropped=False)


_ONE = "SELECT f.id FROM field f JOIN dataset d ON d.id = f.dataset WHERE d.name = ? AND f.name = 'c7'"


if __name__ == "__main__":
    sys.exit(main())
