"""Doors: the modules that users import; documentation, examples and messages name no other."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import FOLDERS, ROOT, sources

# All public modules; `docs/index.md` lists them for users.
DOORS = (
    "lockgate",
    "lockgate.errors",
    "lockgate.governance",
    "lockgate.keys",
    "lockgate.lineage",
    "lockgate.lookup",
    "lockgate.orc",
    "lockgate.plugins",
    "lockgate.pushdown",
    "lockgate.tables",
    "lockgate.testing",
)
# Not after a dot, as in names of Java and Spark's confs, nor as a file's name.
NAME = re.compile(r"(?<![\w./-])lockgate(?:\.[A-Za-z_]\w*)+(?![\w/-])")
# Commands run modules, whether public or not.
COMMAND = re.compile(r"python(?: -\w)* -m lockgate(?:\.\w+)+")
# Metadata of columns, files and snapshots, and labels of derived keys.
NO_MODULES = {
    "lockgate.encrypted",
    "lockgate.envelope.v1",
    "lockgate.generation",
    "lockgate.integrity",
    "lockgate.integrity.tags",
    "lockgate.masked",
    "lockgate.orc.integrity.v1",
    "lockgate.orc.type",
    "lockgate.streams",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The pages for those who change Lockgate, and the table of its folders.
INTERNAL = {"lockgate.framework", "lockgate.procedures"}


def is_public(name: str) -> bool:
    """Tell whether a name is a door, or public in one; its members are."""
    door = max((door for door in DOORS if f"{name}.".startswith(f"{door}.")), key=len)
    rest = name.removeprefix(door).strip(".").split(".")[0]
    return not rest or rest in importlib.import_module(door).__all__ or rest == "__all__"


def private_names(text: str) -> set[str]:
    """Return the dotted names in a text that are not public."""
    return {
        name for name in NAME.findall(COMMAND.sub("", text)) if name not in NO_MODULES and not is_public(name)
    }


def private_imports(code: str) -> Iterator[str]:
    """Yield what code imports from Lockgate other than public names of doors."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if is_ours(each.name) and each.name not in DOORS)
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            for name in (f"{node.module}.{each.name}" for each in node.names):
                if name not in DOORS and not (node.module in DOORS and is_public(name)):
                    yield name


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "lockgate"


@pytest.mark.parametrize("door", DOORS)
def test_a_door_lists_its_names_and_has_them(door: str) -> None:
    module = importlib.import_module(door)
    assert module.__doc__
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_all_errors_are_public() -> None:
    errors = importlib.import_module("lockgate.errors")
    kinds = (errors.LockgateError, Warning)
    types = {name: each for name, each in vars(errors).items() if isinstance(each, type)}
    found = {name for name, each in types.items() if issubclass(each, kinds)}
    assert set(errors.__all__) == found


def test_the_documentation_lists_the_doors() -> None:
    table = (ROOT / "docs" / "index.md").read_text().partition("## Public modules")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \[`([\w.]+)`\]\(reference/(\w+)\.md\)", table, re.MULTILINE)
    assert [module for module, _ in rows] == list(DOORS)
    assert [page for _, page in rows] == [module.split(".")[-1] for module, _ in rows]


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_in_the_reference(door: str) -> None:
    page = f"reference/{door.split('.')[-1]}.md"
    assert f"::: {door}\n" in (ROOT / "docs" / page).read_text()
    assert f"      - {page}\n" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_and_import_what_is_public(page: Path) -> None:
    text = page.read_text()
    assert private_names(text) - INTERNAL == set()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    code = "\n".join(re.sub(r"^(?:>>>|\.\.\.) ?", "", line) for line in lines)
    imports = "\n".join(re.findall(r"^(?:from|import) lockgate.*$", code, re.MULTILINE))
    assert list(private_imports(imports)) == []


def test_examples_import_what_is_public() -> None:
    examples = sorted((ROOT / "examples").rglob("*.py"))
    assert len(examples) > 5
    found = {str(path.relative_to(ROOT)): list(private_imports(path.read_text())) for path in examples}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_messages_and_docstrings_name_what_is_public(folder: str) -> None:
    found: dict[str, set[str]] = {}
    for path in sources():
        if not path.is_relative_to(ROOT / folder):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            # A single word is a name for the program: of a module, a logger or a conf.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                found.setdefault(str(path.relative_to(ROOT)), set()).update(private_names(node.value))
    assert {path: names for path, names in found.items() if names} == {}


def test_private_names_are_found() -> None:
    text = (
        "see lockgate.framework.orc.write_table, `lockgate.orc.write_table`, io.lockgate.spark.Guard, "
        "spark.lockgate.user, and run python -m lockgate.lookup.server.cache_server"
    )
    assert private_names(text) == {"lockgate.framework.orc.write_table"}
    assert list(private_imports("import lockgate.orc\nfrom lockgate.pushdown.negation import negate")) == [
        "lockgate.pushdown.negation.negate"
    ]
    assert list(private_imports("from lockgate.tables import Kind, Secret\nimport lockgate.framework")) == [
        "lockgate.tables.Secret",
        "lockgate.framework",
    ]
