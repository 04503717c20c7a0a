"""The plan of the house: which part stands on which floor, and every import, as the sources say it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("framework", "lookup", "procedures", "pushdown")

# Each part may import the parts of lower floors, never of its own or a higher one.
FLOORS = (
    {"errors", "lazy_names"},
    {"framework.version"},
    {"pushdown"},
    {"framework.options", "framework.types", "framework.io", "framework.access", "framework.plugins"},
    {"framework.keys", "framework.orc"},
    {"framework.store"},
    {"framework.spark"},
    {"procedures", "lookup", "framework.governance", "framework.index", "framework.lineage"},
    {"framework.testing"},
    {"governance", "keys", "lineage", "orc", "plugins", "tables"},
    {"cli", ""},
)
# Within one floor, what may use what; nothing else there may.
BESIDE = {
    ("framework.options", "framework.types"),
    ("framework.plugins", "framework.access"),
    ("framework.plugins", "framework.options"),
    ("framework.orc", "framework.keys"),
    ("framework.index", "procedures"),
    ("framework.governance", "procedures"),
    ("framework.lineage", "procedures"),
    ("lookup", "procedures"),
    ("cli", ""),
}
# Within a part: each room may import the rooms before it. What stands next to the rooms, in the part's own
# folder, is above or below them all, and a module there is named as a room of its own.
ROOMS = {
    "framework.options": ("option", "carried_options", "changelog_options", "tag_options", "table_options"),
    "framework.keys": ("hadoop", "envelopes"),
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
        "codec",
        "metadata",
        "manifests",
        "deletion_vectors",
        "formats",
        "merge",
        "rows",
        "confidential",
        "ddl",
        "pruning",
        "scan",
        "commit",
        "write",
        "history",
        "maintenance",
        "streams",
        "system",
        "tables",
    ),
    "framework.spark": ("messages", "context", "enforcement", "operations", "bridge", "session"),
    "framework.io": ("cache",),
    "framework.lineage": ("model", "store", "questions", "export", "checks"),
    "framework.index": ("database",),
    "framework.governance": ("points", "ranger", "audit", "requests"),
    "framework.governance.ranger": ("matching", "conditions", "policies", "engine", "protocol"),
    "pushdown": ("texts", "index"),
    "lookup": ("codec", "spec", "cache", "partial", "remote", "server", "driver", "join"),
    "procedures.builtin": ("compact", "history", "migrate", "partitions", "statements"),
    "cli": ("common", "progress", "exposures", "keys", "lookup", "verify", "orc", "main"),
}


# What holds statements; all else that a syntax tree consists of holds no imports.
STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


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
    yield from walk(tree, str(path.relative_to(ROOT)), runs=True, at_top=True)


def walk(node: ast.AST, where: str, *, runs: bool, at_top: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(where, child.lineno, alias.name, runs, at_top)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{where}:{child.lineno}: imports in the library are absolute"
            for alias in child.names:
                yield Import(where, child.lineno, resolved(child.module or "", alias.name), runs, at_top)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                yield from walk(ast.Module([statement], []), where, runs=False, at_top=at_top)
            for statement in child.orelse:
                yield from walk(ast.Module([statement], []), where, runs=runs, at_top=at_top)
        elif isinstance(child, STATEMENTS):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from walk(child, where, runs=runs, at_top=at_top and not inside)


def resolved(module: str, name: str) -> str:
    """Return the module that `from module import name` reaches: a submodule, or the module itself."""
    if not module.startswith("lockgate"):
        return module
    below = ROOT / "src" / Path(*module.split("."))
    if (below / name).is_dir() or (below / f"{name}.py").exists():
        return f"{module}.{name}"
    return module


@cache
def all_imports() -> list[tuple[Path, Import]]:
    """Return the imports of all sources."""
    return [(path, each) for path in sources() for each in imports_of(path)]
