"""The lineage of the enriched flights: which columns they came from, as Lockgate recorded it on the way."""

from __future__ import annotations

from typing import Any

from flights.story import Story
from lockgate import Lake

# The column of the enriched flights, and the only column that it comes from, through a lookup join.
EXPECTED = {
    "model": "flights.planes.model",
    "seats": "flights.planes.seats",
    "lat": "flights.airports.lat",
    "temp": "flights.weather.temp",
}


def trace(lake: Lake, story: Story) -> None:
    """Trace the enriched flights back, check four columns, and keep the page of the graph."""
    found: dict[str, str] = {}
    for column in EXPECTED:
        edges = lineage(lake, f"flights.enriched.{column}", depth=1).edges.to_pylist()
        found[column] = ", ".join(sorted({edge["source"].removeprefix("lake.") for edge in edges}))
    story.check_equal("columns of the lookup joins come from their tables", found, EXPECTED, "4 columns")
    story.lineage = lineage(lake, "flights.enriched").to_html()
    for column, source in found.items():
        print(f"  {column} <- {source}")


def lineage(lake: Lake, name: str, depth: int | None = None) -> Any:
    """Ask for a lineage."""
    return lake.lineage(name, depth=depth)  # type: ignore[attr-defined]  # a method that a plugin adds
