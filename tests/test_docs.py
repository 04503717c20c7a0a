"""Everything public is documented: hooks and their signatures, procedures, arguments, results, options."""

from __future__ import annotations

import doctest
import inspect
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import generated_docs
import pytest

import lockgate
from lockgate import errors
from lockgate.framework import options
from lockgate.framework.plugins import hookspecs, plugins
from lockgate.procedures import TypedProcedure, find

ROOT = Path(__file__).resolve().parent.parent
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
README = (ROOT / "README.md").read_text()
TUTORIALS = [f"docs/tutorials/{path.name}" for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
IN_DOCS = [*(f"docs/{name}" for name in PAGES), *TUTORIALS]
ONLY_READ = {"check_access", "check_keys", "impact", "index_advice", "lineage", "plaintext", "show_grants"}
# These change no table.
OF_GRANTS = {"request_access", "grant", "revoke"}
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("lockgate_"))


def builtin() -> list[str]:
    """Return the names of the procedures that come with Lockgate, whatever else is installed."""
    found = plugins().procedures().items()
    return sorted(name for name, each in found if type(each).__module__.startswith("lockgate."))


def page_of(procedure: str) -> str:
    """Return the page that describes a procedure, under a heading with its name."""
    pages = ("procedures.md", "indexes.md", "lineage.md", "governance.md")
    found = [page for page in pages if re.search(rf"^##+ {procedure}$", PAGES[page], re.MULTILINE)]
    assert len(found) == 1, f"{procedure} has a heading on one page, not on {found}"
    return found[0]


def section(page: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its rank or above."""
    match = re.search(rf"^(##+) {re.escape(heading)}$", PAGES[page], re.MULTILINE)
    assert match, f"docs/{page} has no heading '{heading}'"
    rest = PAGES[page][match.end() :]
    following = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_its_signature(hook: str) -> None:
    function = getattr(hookspecs, hook)
    parameters = ", ".join(inspect.signature(function).parameters)
    text = section("plugins.md", f"{hook}({parameters})")
    assert (function.__doc__ or "").strip() in text, (
        "the sentence of hookspecs.py stands in the documentation"
    )
    assert f"def {hook}(" in text, "an example shows the hook"


def test_no_hook_is_documented_that_does_not_exist() -> None:
    assert sorted(re.findall(r"^### (\w+)\(", PAGES["plugins.md"], re.MULTILINE)) == HOOKS


def test_every_hook_is_asked_for_by_the_manager() -> None:
    for hook in HOOKS:
        assert callable(getattr(plugins(), hook.removeprefix("lockgate_")))


@pytest.mark.parametrize("name", builtin())
def test_every_procedure_is_documented(name: str) -> None:
    page = page_of(name)
    text = section(page, name)
    assert f"CALL lake.sys.{name}(" in PAGES[page]
    assert f"<!-- generated: procedure {name} -->" in text


def test_the_list_of_procedures_is_whole() -> None:
    top = PAGES["procedures.md"].partition("## compact")[0]
    rows = re.findall(r"^\| [a-z ]+ \| (\[.*) \|$", top, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"\[(\w+)\]", row)) == builtin()


@pytest.mark.parametrize("name", builtin())
def test_every_procedure_explains_itself(name: str) -> None:
    procedure = find(name)
    assert isinstance(procedure, TypedProcedure)
    assert all(each.doc for each in procedure.columns)
    assert procedure.description.endswith(".")
    assert all(each.doc for each in procedure.parameters)
    if name not in ONLY_READ | OF_GRANTS:
        assert "dry_run" in [each.name for each in procedure.parameters]
        assert not any(kind == "BOOLEAN" for _, kind in procedure.result), "counts, not one boolean"


def test_every_option_is_documented() -> None:
    documented = set(re.findall(r"`([a-z][\w.-]+)`", "\n".join(PAGES.values())))
    assert sorted(set(options.known_options()) - documented) == []


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_are_what_the_code_says(page: str) -> None:
    """`./dev docs` writes them."""
    markers = re.findall(r"<!--.*generated.*-->", PAGES[page])
    assert all(line == generated_docs.END for line in markers[1::2])
    assert len(re.findall(generated_docs.PART, PAGES[page])) * 2 == len(markers)
    assert generated_docs.generated(PAGES[page]) == PAGES[page]


def test_every_public_name_is_documented() -> None:
    text = "\n".join([README, *PAGES.values()])
    missing = [name for name in lockgate.__all__ if not name.startswith("__") and name not in text]
    assert not missing


def test_every_error_is_documented() -> None:
    text = section("index.md", "Errors")
    names = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", PAGES["index.md"]))
    assert linked == set(PAGES) - {"index.md"}


def test_every_tutorial_is_in_the_index_and_on_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    assert TUTORIALS
    for page in TUTORIALS:
        name = page.removeprefix("docs/")
        assert f"]({name})" in PAGES["index.md"]
        assert name in site


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", *IN_DOCS])
def test_every_heading_has_text_and_no_line_stands_twice(page: str) -> None:
    text = re.sub(r"^```.*?^```", "code", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if line.strip()]
    for line, following in pairwise(lines):
        ranks = [re.match(r"#*", each)[0] for each in (line, following)]  # type: ignore[index]  # always matches
        assert not ranks[0] or not ranks[1] or len(ranks[1]) > len(ranks[0]), f"{line} has no text"
        assert line != following or len(line) < 20, f"{line} stands twice"


def anchors(page: Path) -> list[str]:
    """Return the names by which the headings of a page are linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *IN_DOCS])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target, heading in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text):
        found = (ROOT / page).parent / target if target else ROOT / page
        assert found.exists(), f"{page} links to {target}"
        assert not heading or heading in anchors(found), f"{page} links to {target}#{heading}"


@pytest.mark.parametrize("page", ["README.md", *IN_DOCS])
def test_python_in_the_documentation_is_python(page: str) -> None:
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)):
        if block.startswith(">>>"):
            block = doctest.script_from_examples(block)
        compile(block, f"{page}, block {number}", "exec")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *IN_DOCS])
def test_documentation_names_no_machine(page: str) -> None:
    assert not re.search(r"/(home|root|work|Users)/", (ROOT / page).read_text())


def test_the_snippet_of_the_front_page_is_the_one_that_is_tested() -> None:
    """tests/test_wheel.py runs it against the built wheel."""
    assert len(re.findall(r"```python\n", README)) == 1


TWINS = re.findall(r"^\|[^|]+\| (.+?) \| (.+?) \| `tests/fixtures/([\w.]+)` \|$", PAGES["twins.md"], re.M)
FIXTURES = ROOT / "tests" / "fixtures"
# Files that tests read with Java at hand, and that are no pair of inputs and expected outputs.
ONLY_INPUTS = {
    "atlas_types.json",
    "date_patterns.json",
    "keys",
    "openlineage",
    "orc",
    "paimon",
    "ranger",
    "zoo",
}
RUNS_JAVA = re.compile(r"\b_?jvm\.io\.lockgate\.|\btest_jar\(\)")


@cache
def texts_of_tests() -> dict[Path, str]:
    """Return the text of every file of the tests but this one."""
    return {path: path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}


def readers_of(vectors: str) -> list[str]:
    """Return the text of every test that names a file or folder of vectors, or imports a helper that does."""
    files = texts_of_tests()
    helpers = [
        path.stem for path, text in files.items() if path.match("support/*") and f'"{vectors}"' in text
    ]
    reads = "|".join([rf'"{re.escape(vectors)}"', *(rf"^from {each} import" for each in helpers)])
    return [
        text
        for path, text in files.items()
        if path.stem.startswith("test_") and re.search(reads, text, re.MULTILINE)
    ]


def test_every_twin_is_listed_once() -> None:
    names = [path.name for path in FIXTURES.iterdir() if path.suffix in {"", ".json"} and path.name[0] != "_"]
    run = [name for name in names if any(RUNS_JAVA.search(text) for text in readers_of(name))]
    assert sorted(vectors for _, _, vectors in TWINS) == sorted({*run} - ONLY_INPUTS)


@pytest.mark.parametrize(("python", "java", "vectors"), TWINS, ids=[each[2] for each in TWINS])
def test_twins_have_vectors_that_both_sides_run(python: str, java: str, vectors: str) -> None:
    sources = re.findall(r"`(.+?)`", python)
    assert all((ROOT / path).exists() for path in sources)
    for name in re.findall(r"`(.+?)`", java):
        assert list((ROOT / "framework" / "spark" / "java").rglob(f"{name}.java")), name
    assert vectors.endswith(".json") or list((FIXTURES / vectors).glob("*.json"))
    modules = [path.removesuffix(".py").rpartition("/") for path in sources]
    tests = readers_of(vectors)
    assert any(RUNS_JAVA.search(text) for text in tests), "no test runs them through the connector"
    folders = [(f"lockgate.{folder.replace('/', '.')}", module) for folder, _, module in modules]
    imports = "|".join(
        rf"{re.escape(folder)}(\.{module}| import .*\b{module})\b" for folder, module in folders
    )
    assert any(re.search(imports, text) for text in tests), f"no test of {python} runs them"
