"""The installed plugins: entry points of the group `lockgate`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, distributions

ENTRY_POINT_GROUP = "lockgate"


def installed() -> list[tuple[EntryPoint, str]]:
    """Return the entry points of the group; a distribution that `sys.path` lists twice counts once."""
    entry_points: dict[tuple[str, str, str], tuple[EntryPoint, str]] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"] or "?"
        for entry_point in distribution.entry_points:
            if entry_point.group == ENTRY_POINT_GROUP:
                entry_points.setdefault((name, entry_point.name, entry_point.value), (entry_point, name))
    return [entry_points[key] for key in sorted(entry_points)]
