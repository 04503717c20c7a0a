"""The floors of the house: no import leads upward, and there is no circle.

`lockgate.errors` <- `pushdown` <- `framework` (options, types, io, plugins <- keys, orc <- store <- spark)
<- `procedures`, `lookup` <- `lockgate` itself. Every import counts, inside functions too. Imports under
`if TYPE_CHECKING` are annotations and load nothing; only the plugin contract, which names what plugins hand
over, may point upward with them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("framework", "lookup", "procedures", "pushdown")

# Each part may import the parts of lower floors, never of its own or a higher one.
FLOORS = (
    {"errors", "lazy_names"},
    {"framework.version"},
    {"pushdown"},
    {"framework.options", "framework.types", "framework.io", "framework.plugins"},
    {"framework.keys", "framework.orc"},
    {"framework.store"},
    {"framework.spark"},
    {"procedures", "lookup"},
    {"keys", "orc", "plugins", "tables"},
    {"cli", ""},
)
# Within one floor, what may use what; nothing else there may.
BESIDE = {
    ("framework.options", "framework.types"),
    ("framework.orc", "framework.keys"),
    ("cli", ""),
}
# Within a part: each room may import the rooms before it. What stands beside the rooms, in the part's own
# folder, is above or below them all, and a module there is named as a room of its own.
ROOMS = {
    "framework.options": ("option", "table_options"),
    "framework.orc": (
        "sources",
        "format",
        "encryption",
        "masks",
        "integrity",
        "isolation",
        "read",
        "write",
        "tools",
    ),
    "framework.store": (
        "schema",
        "metadata",
        "manifests",
        "formats",
        "rows",
        "ddl",
        "scan",
        "write",
        "history",
    ),
    "framework.spark": ("operations", "bridge"),
    "lookup": ("codec", "spec", "cache", "owner", "driver", "join"),
    "procedures.builtin": ("compact", "history", "migrate"),
    "cli": ("common", "progress", "exposures", "keys", "lookup", "verify", "orc", "main"),
}
# The contract of plugins names types of all floors, for annotations only.
ANNOTATIONS_ONLY = {"framework.plugins"}

PYSPARK = {
    "framework/spark",
    "lookup/driver/counting.py",
    *(f"lookup/join/{name}.py" for name in ("join", "jvm", "metrics", "plan", "spark_filter", "spark_join")),
}
ROCKSDICT = {"lookup"}


@dataclass(frozen=True)
class Import:
    """One imported module, where it stands, and whether it runs."""

    path: str
    line: int
    module: str
    runs: bool
    at_top: bool


def part_of(module: str) -> str:
    """Return the part of the house that a module below `lockgate` belongs to."""
    pieces = module.split(".")[1:]
    if pieces[:1] == ["framework"] and len(pieces) > 1:
        return ".".join(pieces[:2])
    return pieces[0] if pieces else ""


def module_of(path: Path) -> str:
    relative = path.relative_to(ROOT / "src" / "lockgate") if "src" in path.parts else path.relative_to(ROOT)
    pieces = [piece for piece in relative.with_suffix("").parts if piece != "__init__"]
    return ".".join(["lockgate", *pieces])


def sources() -> list[Path]:
    own = sorted(
        [*(ROOT / "src" / "lockgate").glob("*.py"), *(ROOT / "src" / "lockgate" / "cli").glob("*.py")]
    )
    return own + [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if is_package(path)
    ]


def is_package(path: Path) -> bool:
    return (path.parent / "__init__.py").exists()


def imports_of(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(), str(path))
    yield from walk(tree, path, runs=True, at_top=True)


def walk(node: ast.AST, path: Path, *, runs: bool, at_top: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        where = str(path.relative_to(ROOT))
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(where, child.lineno, alias.name, runs, at_top)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{where}:{child.lineno}: imports in the library are absolute"
            for alias in child.names:
                yield Import(where, child.lineno, resolved(child.module or "", alias.name), runs, at_top)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                yield from walk(ast.Module([statement], []), path, runs=False, at_top=at_top)
            for statement in child.orelse:
                yield from walk(ast.Module([statement], []), path, runs=runs, at_top=at_top)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, path, runs=runs, at_top=at_top and not inside)


def resolved(module: str, name: str) -> str:
    """Return the module that `from module import name` reaches: a submodule, or the module itself."""
    if not module.startswith("lockgate"):
        return module
    below = ROOT / "src" / Path(*module.split("."))
    if (below / name).is_dir() or (below / f"{name}.py").exists():
        return f"{module}.{name}"
    return module


def floor_of(part: str) -> int:
    for number, parts in enumerate(FLOORS):
        if part in parts:
            return number
    raise AssertionError(f"lockgate.{part} is on no floor: put it on one in {Path(__file__).name}")


ALL = [(path, each) for path in sources() for each in imports_of(path)]


def test_no_import_leads_upward() -> None:
    wrong = []
    for path, each in ALL:
        if not each.module.startswith("lockgate"):
            continue
        here, there = part_of(module_of(path)), part_of(each.module)
        # `from lockgate import framework`-like imports and a package's own modules are no arrow.
        if here == there or here == "framework" or there == "framework":
            continue
        if here in ANNOTATIONS_ONLY and not each.runs:
            continue
        if floor_of(there) >= floor_of(here) and (here, there) not in BESIDE:
            wrong.append(f"{each.path}:{each.line}: lockgate.{here} imports {each.module}")
    assert not wrong, "\n".join(wrong)


def test_the_package_of_the_framework_imports_nothing() -> None:
    assert not list(imports_of(ROOT / "framework" / "__init__.py"))


def test_no_circle_between_modules() -> None:
    graph: dict[str, set[str]] = {}
    for path, each in ALL:
        if each.at_top and each.runs and each.module.startswith("lockgate"):
            graph.setdefault(module_of(path), set()).add(each.module)
    # A package is entered on the way to each of its modules; what it loads lazily is not at the top.
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        if module in trail:
            pytest.fail(f"circle: {' -> '.join([*trail[trail.index(module) :], module])}")
        if module in done:
            return
        for target in sorted(graph.get(module, ())):
            if target != module:
                visit(target, (*trail, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())


@pytest.mark.parametrize(("package", "homes"), [("pyspark", PYSPARK), ("rocksdict", ROCKSDICT)])
def test_heavy_packages_stay_in_their_parts(package: str, homes: set[str]) -> None:
    wrong = [
        f"{each.path}:{each.line}"
        for _, each in ALL
        if each.module.split(".")[0] == package
        and each.runs
        and not any(each.path == home or each.path.startswith(f"{home}/") for home in homes)
        # A procedure may use Spark, inside the function that needs it.
        and not (package == "pyspark" and each.path.startswith("procedures/") and not each.at_top)
    ]
    assert not wrong, f"{package} is imported outside {sorted(homes)}: {wrong}"


def room_of(module: str) -> tuple[str, str] | None:
    """Return the part and the room of a module; a module beside the rooms is a room of its own."""
    below = module.removeprefix("lockgate.")
    for part in ROOMS:
        if below.startswith(f"{part}."):
            return part, below.removeprefix(f"{part}.").split(".")[0]
    return None


def arrows_between_rooms() -> dict[str, dict[tuple[str, str], list[str]]]:
    """Return, by part, which room imports which, with the lines that do; annotations load nothing."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for path, each in ALL:
        here, there = room_of(module_of(path)), room_of(each.module)
        if here and there and each.runs and here[0] == there[0] and here[1] != there[1]:
            arrows = found.setdefault(here[0], {})
            arrows.setdefault((here[1], there[1]), []).append(
                f"{each.path}:{each.line} imports {each.module}"
            )
    return found


@pytest.mark.parametrize("part", ROOMS)
def test_no_import_leads_upward_between_rooms(part: str) -> None:
    order = ROOMS[part]
    wrong = [
        line
        for (here, there), lines in arrows_between_rooms().get(part, {}).items()
        if here in order and there in order and order.index(there) >= order.index(here)
        for line in lines
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", ROOMS)
def test_no_circle_between_rooms(part: str) -> None:
    """Modules beside the rooms count too: one of them may not be above a room and below it."""
    arrows = arrows_between_rooms().get(part, {})
    below = {here: {there for start, there in arrows if start == here} for here, _ in arrows}

    def visit(room: str, trail: tuple[str, ...]) -> None:
        if room in trail:
            circle = [*trail[trail.index(room) :], room]
            lines = [arrows[step][0] for step in itertools.pairwise(circle)]
            pytest.fail(f"circle: {' -> '.join(circle)}\n" + "\n".join(lines))
        for target in sorted(below.get(room, ())):
            visit(target, (*trail, room))

    for room in sorted(below):
        visit(room, ())


def test_every_room_is_on_a_floor() -> None:
    for part, order in ROOMS.items():
        folder = ROOT / "src" / "lockgate" / Path(*part.split("."))
        rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
        assert rooms <= set(order), f"{part}: put {sorted(rooms - set(order))} on a floor"


def test_every_room_says_in_one_sentence_what_is_in_it() -> None:
    for path in sources():
        part = ".".join(path.parent.relative_to(ROOT).parts)
        if (
            path.name == "__init__.py"
            and part.rpartition(".")[0] in ROOMS
            and "__all__" not in path.read_text()
        ):
            assert re.fullmatch(r'"""[A-Z][^"]*\."""\n', path.read_text()), path


def test_every_part_says_what_it_exports() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name == "__init__.py"
        and len(path.relative_to(ROOT).parts) < 4
        and path.parent.name not in ("builtin", "framework", "options", "cli")
        and ".".join(path.parent.relative_to(ROOT).parts[:-1]) not in ROOMS
        and "__all__" not in path.read_text()
    ]
    assert not silent


def test_modules_stay_small() -> None:
    long = {str(path.relative_to(ROOT)): count for path in sources() if (count := line_count(path)) > 500}
    assert not long, "one idea a module, at most 500 lines"


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())
