"""The plan of the house: floors as `pyproject.toml` lists them, rooms and imports as grimp finds them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("framework", "lookup", "procedures", "pushdown")
CONTRACTS = {
    each["id"]: each
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}


def floors() -> list[list[str]]:
    """Return the parts on each floor, from the top, by their names below `lockgate`."""
    return [
        [part.strip().removeprefix("lockgate.") for part in layer.split("|")]
        for layer in CONTRACTS["floors"]["layers"]
    ]


def part_of(module: str) -> str:
    """Return the part of the house that a module below `lockgate` belongs to."""
    pieces = module.split(".")[1:]
    if pieces[:1] == ["framework"] and len(pieces) > 1:
        return ".".join(pieces[:2])
    return pieces[0] if pieces else ""


@cache
def imports(*, annotations: bool = False) -> grimp.ImportGraph:
    """Return who imports whom; with `annotations` also what only type checkers import."""
    return grimp.build_graph("lockgate", exclude_type_checking_imports=not annotations, cache_dir=None)


@cache
def rooms(part: str) -> tuple[str, ...]:
    """Return the names of the rooms of a part: the packages in it."""
    home = f"lockgate.{part}"
    return tuple(
        sorted(
            each.rpartition(".")[2]
            for each in imports().find_children(home)
            if (ROOT / "src" / Path(*each.split(".")) / "__init__.py").exists()
        )
    )


def spread_rooms(part: str) -> set[str]:
    """Return the rooms of a part that are on several floors of it: the linter knows them by their modules."""
    layers = [
        layer
        for each in CONTRACTS.values()
        if each.get("containers") == [f"lockgate.{part}"]
        for layer in each["layers"]
    ]
    names = {name.strip() for layer in layers for name in layer.replace("|", ":").split(":")}
    return {name.partition(".")[0] for name in names if "." in name}


@cache
def storeys(part: str) -> list[list[str]]:
    """Return the rooms of a part from the top: each imports only rooms of later lists."""
    names = [room for room in rooms(part) if room not in spread_rooms(part)]
    home = f"lockgate.{part}"
    below = {
        here: [
            there
            for there in names
            if there != here
            and imports().direct_import_exists(
                importer=f"{home}.{here}", imported=f"{home}.{there}", as_packages=True
            )
        ]
        for here in names
    }

    def height(room: str) -> int:
        return 1 + max(map(height, below[room]), default=-1)

    heights = {room: height(room) for room in names}
    return [[room for room in names if heights[room] == each] for each in sorted(set(heights.values()))[::-1]]


def sources() -> list[Path]:
    """Return the library's Python sources, under their own folders."""
    own = sorted(
        [*(ROOT / "src" / "lockgate").glob("*.py"), *(ROOT / "src" / "lockgate" / "cli").glob("*.py")]
    )
    return own + [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if is_package(path)
    ]


def is_package(path: Path) -> bool:
    return (path.parent / "__init__.py").exists()
