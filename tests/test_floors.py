"""The floors of the house: no import leads upward, and there is no circle.

`lockgate.errors` <- `pushdown` <- `framework` (options, types, io, access, plugins <- keys, orc <- store
<- spark) <- `procedures`, `lookup` <- `lockgate` itself. Every import counts, inside functions too. Imports
under `if TYPE_CHECKING` are annotations and load nothing; only the plugin contract, which names what plugins
hand over, may point upward with them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from house import BESIDE, FLOORS, ROOMS, ROOT, all_imports, imports_of, module_of, part_of, sources

# The contract of plugins names types of all floors, for annotations only.
ANNOTATIONS_ONLY = {"framework.plugins"}

PYSPARK = {
    "framework/spark",
    "lookup/driver/batch_counts.py",
    *(f"lookup/join/{name}.py" for name in ("join", "jvm", "metrics", "plan", "spark_filter")),
    *(f"lookup/join/{name}.py" for name in ("spark_join", "sql_join")),
}
ROCKSDICT = {"lookup"}
CONNECTOR = ROOT / "framework" / "spark" / "java"


def floor_of(part: str) -> int:
    for number, parts in enumerate(FLOORS):
        if part in parts:
            return number
    raise AssertionError(f"lockgate.{part} is on no floor: put it on one in tests/support/house.py")


def test_no_import_leads_upward() -> None:
    wrong = []
    for path, each in all_imports():
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
    for path, each in all_imports():
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
        for _, each in all_imports()
        if each.module.split(".")[0] == package
        and each.runs
        and not any(each.path == home or each.path.startswith(f"{home}/") for home in homes)
        # A procedure may use Spark, inside the function that needs it.
        and not (package == "pyspark" and each.path.startswith("procedures/") and not each.at_top)
    ]
    assert not wrong, f"{package} is imported outside {sorted(homes)}: {wrong}"


def room_of(module: str) -> tuple[str, str] | None:
    """Return the part and the room of a module; a module next to the rooms is a room of its own."""
    below = module.removeprefix("lockgate.")
    for part in ROOMS:
        if below.startswith(f"{part}."):
            return part, below.removeprefix(f"{part}.").split(".")[0]
    return None


def arrows_between_rooms() -> dict[str, dict[tuple[str, str], list[str]]]:
    """Return, by part, which room imports which, with the lines that do; annotations load nothing."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for path, each in all_imports():
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
    """Modules next to the rooms count too: one of them may not be above a room and below it."""
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
        if path.name == "__init__.py" and part.rpartition(".")[0] in ROOMS:
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
    files = [*sources(), *CONNECTOR.rglob("*.java")]
    long = {str(path.relative_to(ROOT)): count for path in files if (count := line_count(path)) > 400}
    assert not long, "one idea a module or class, at most 400 lines"


def test_a_folder_holds_few_files() -> None:
    """A reader finds the file of an idea in the list of its folder; Java's packages count too."""
    files = [path for path in sources() if path.name != "__init__.py"] + sorted(CONNECTOR.rglob("*.java"))
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    crowded = {folder: count for folder, count in counts.items() if count > 16}
    assert not crowded, "divide these folders by what their files are about: at most 16 sources each"


MIRRORED = ("framework", "lookup", "procedures", "pushdown")


def test_tests_mirror_folders() -> None:
    """A reader finds the tests of a room in the folder of its name."""
    tests = [path for part in MIRRORED for path in (ROOT / "tests" / part).rglob("test_*.py")]
    counts = Counter(path.parent.relative_to(ROOT / "tests") for path in tests)
    absent = {str(folder) for folder in counts if not (ROOT / folder).is_dir()}
    assert not absent, "name these folders as those of the sources are named"
    crowded = {str(folder): count for folder, count in counts.items() if count > 24}
    assert not crowded, "move tests into folders of their rooms: at most 24 each"


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())
