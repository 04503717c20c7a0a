"""Words that readers stumble over, refused in the documentation and in the text of all sources."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
FOLDERS = ("framework", "lookup", "procedures", "pushdown", "src/lockgate")
# Text in quotes is code where it is on one line; Java's tokens are told apart only as far as this needs.
JAVA_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
REFUSED = {
    r"anew": "again, or a verb with re-",
    r"whoever": "anyone who",
    r"of (?:then|before)": "earlier, old",
    r"(?:is|are|was|were) told (?:by|of)": "identified by, knows",
    r"besides?": "in addition to, next to, with",
    r"meanwhile": "concurrently, since then, or nothing",
    r"be rid of": "remove",
    r"for to": "because",
    r"speaks? against": "prevents",
    r"needless": "not needed",
}
PATTERN = re.compile("|".join(rf"\b(?:{words})\b" for words in REFUSED), re.IGNORECASE)
CLAUSE = re.compile(r"(?:What|Which|Whose|Whom|Who|Where|How|When|Having|From .* to) ")
TITLE = re.compile(r"^#+ (?:What is known|Which |Whom |Whose |From .* to )", re.MULTILINE)


def refused(text: str) -> list[str]:
    """Return the words of a text that are not to be in it."""
    return [match[0] for match in PATTERN.finditer(text)]


def python_text(path: Path) -> str:
    """Return the docstrings, messages and comments of a module; a phrase may go on in the next line."""
    with tokenize.open(path) as source:
        tokens = list(tokenize.generate_tokens(source.readline))
    text = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    return joined(token.string.strip('#f"') for token in tokens if token.type in text)


def java_text(path: Path) -> str:
    """Return the comments and messages of a Java source."""
    return joined(match[0].strip('/*"') for match in JAVA_TEXT.finditer(path.read_text()))


def joined(pieces: Iterable[str]) -> str:
    return re.sub(r"\s+(?:\* )?", " ", " ".join(pieces))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_documentation_has_no_words_that_are_read_twice(page: Path) -> None:
    text = page.read_text()
    assert refused(text) == []
    assert TITLE.findall(text) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_messages_and_comments_have_no_words_that_are_read_twice(folder: str) -> None:
    top = ROOT / folder
    paths = [path for path in sorted(top.rglob("*.py")) if path.resolve().is_relative_to(top)]
    assert paths
    found = {str(path.relative_to(ROOT)): refused(python_text(path)) for path in paths}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_are_described_by_nouns_and_verbs(folder: str) -> None:
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if path.read_text()]
    titles = {str(path.relative_to(ROOT)): ast.get_docstring(ast.parse(path.read_text())) for path in paths}
    assert {path: title for path, title in titles.items() if CLAUSE.match(title or "")} == {}


def test_java_has_no_words_that_are_read_twice() -> None:
    paths = sorted((ROOT / "framework" / "spark" / "java").rglob("*.java"))
    assert len(paths) > 100
    found = {path.name: refused(java_text(path)) for path in paths}
    assert {name: words for name, words in found.items() if words} == {}


def test_options_and_arguments_have_no_words_that_are_read_twice() -> None:
    from lockgate.framework.options import table_options
    from lockgate.framework.plugins import plugins
    from lockgate.procedures.builtin import builtin_procedures

    plugins()  # plugins add options
    texts = [option.doc for option in table_options.known_options().values()]
    for procedure in builtin_procedures():
        texts += [procedure.description, *(parameter.doc for parameter in procedure.parameters)]
    assert len(texts) > 60
    assert refused("\n".join(texts)) == []


@pytest.mark.parametrize("text", ["written anew", "tables of before", "Whoever reads", "is told by a clock"])
def test_such_words_are_found(text: str) -> None:
    assert refused(text)


def test_the_text_of_sources_is_found(tmp_path: Path) -> None:
    python, java = tmp_path / "a.py", tmp_path / "A.java"
    python.write_text('"""Made anew."""\nanew = f"as of "\n"then"  # whoever {anew}\n')
    java.write_text('/** The columns of\n * before. */\nint anew; // whoever\nString a = "told" + "anew";\n')
    assert refused(python_text(python)) == ["anew", "of then", "whoever", "anew"]
    assert refused(java_text(java)) == ["of before", "whoever", "anew"]


def test_other_words_are_not_found() -> None:
    assert refused("a renewed key, a whole file, the side of a join, one of the beforehand") == []
