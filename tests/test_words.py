"""Words that readers stumble over: refused in documentation, text and names; what a docstring begins with."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
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
# Names that stood for several ideas each, and nouns of the field that say which is meant.
RENAMED = {
    "told_seconds_ago": "seconds_since_report",
    "lazily": "lazy_attributes",
    "together": "merged, combined, coalesced",
    "look_up_in_parts": "look_up_batches",
    "places_of": "matching_ranges, positions_of",
    "Chosen": "RowSelection",
    "ChosenRows": "MatchingRows",
    "Asked": "RangerRequest",
    "Outside": "ExternalDatasets",
    "RowChoice": "RowSelector",
    "CachePlaces": "CachePaths",
    "VectorPlace": "VectorLocation",
    "keepPlace": "reserveNull",
    "KeyFold": "UpsertMerge",
    "KeyRows": "RowVersions",
    "KeyRule": "MergeRule",
    "Asking": "TaskLookup",
    "Serving": "ServedState",
    "known": "names, columns, options, or what else is known",
    "place": "index, position, path, location",
    "standing": "status",
    "told": "message, counts, or what else is said",
    "hear": "receive, listener",
    "_hear": "_receive, _listener",
    "heard": "listener, calls, last_poll",
    "_heard": "_listener",
    "said": "document, event, remark, reason, or what else is said",
    "_said": "_document",
    "Said": "Document",
    "_suits_driver": "_fits_on_driver",
    "_found_places": "_found_positions",
}
# A function's docstring begins with a verb. A property's may begin with a noun, as an attribute's does.
QUESTIONS = frozenset(["Whether", "What", "How", "Where", "Which", "Why", "Who", "Whom", "Whose", "When"])
NOUNS = QUESTIONS | {
    *("The", "A", "An", "Every", "Each", "All", "One", "Two", "These", "Those", "Both"),
    *("No", "Nothing", "Nobody"),
}
JAVADOC = re.compile(r"/\*\*\s+(?:\* )?(?:Whether|What|How|Where|Which|Why|Who|Whom|Whose|When) ")
JAVA_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
SILENCED = re.compile(r"#\s*(?:type: ignore|noqa|mypy:|ruff: noqa|pragma:)|@SuppressWarnings")
# A reason stands behind what is silenced. Only mypy's settings for a whole module leave no room for it.
WITH_REASON = re.compile(
    r"(?:# type: ignore\[[\w,-]+\]\s+#\s*|# (?:ruff: )?noqa: [A-Z0-9, ]+ - |@SuppressWarnings\(.*\) // )\w"
)
CLAUSE = re.compile(r"(?:What|Which|Whose|Whom|Who|Where|How|When|Having|From .* to) ")
TITLE = re.compile(r"^#+ (?:What is known|Which |Whom |Whose |From .* to )", re.MULTILINE)


def refused(text: str) -> list[str]:
    """Return the words of a text that are not to be in it."""
    return [match[0] for match in PATTERN.finditer(text)]


@cache
def tokens_of(path: Path) -> list[tuple[int, str]]:
    """Return the tokens of a module: their types and texts."""
    with tokenize.open(path) as source:
        return [(token.type, token.string) for token in tokenize.generate_tokens(source.readline)]


def python_text(path: Path) -> str:
    """Return the docstrings, messages and comments of a module; a phrase may go on in the next line."""
    text = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    return joined(string.strip('#f"') for type_, string in tokens_of(path) if type_ in text)


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


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks", "examples", "tests"])
def test_docstrings_messages_and_comments_have_no_words_that_are_read_twice(folder: str) -> None:
    # This file lists such words.
    paths = [path for path in sources(folder) if path != Path(__file__).resolve()]
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
    from lockgate.procedures.builtin.instances import builtin_procedures

    plugins()  # plugins add options
    texts = [option.doc for option in table_options.known_options().values()]
    for procedure in builtin_procedures():
        texts += [procedure.description, *(parameter.doc for parameter in procedure.parameters)]
    assert len(texts) > 60
    assert refused("\n".join(texts)) == []


def sources(folder: str) -> list[Path]:
    """Return the Python sources of a folder, without those that links lead to."""
    top = ROOT / folder
    return [path for path in sorted(top.rglob("*.py")) if path.resolve().is_relative_to(top)]


def java_sources() -> list[Path]:
    return sorted((ROOT / "framework" / "spark" / "java").rglob("*.java"))


def python_names(path: Path) -> set[str]:
    """Return what a module calls its variables, parameters, attributes and functions."""
    return {string for type_, string in tokens_of(path) if type_ == tokenize.NAME}


def java_names(path: Path) -> set[str]:
    return set(JAVA_NAME.findall(JAVA_TEXT.sub(" ", path.read_text())))


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks"])
def test_names_are_nouns_of_the_field(folder: str) -> None:
    found = {str(path.relative_to(ROOT)): python_names(path) & RENAMED.keys() for path in sources(folder)}
    assert found
    assert {path: names for path, names in found.items() if names} == {}


def test_names_in_java_are_nouns_of_the_field() -> None:
    found = {path.name: java_names(path) & RENAMED.keys() for path in java_sources()}
    assert {name: names for name, names in found.items() if names} == {}


def definitions(path: Path) -> list[str]:
    """Return the names of the functions and classes of a module as words."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [
        node.name.replace("_", " ")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kinds)
    ]


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks", "examples", "tests"])
def test_names_have_no_words_that_are_read_twice(folder: str) -> None:
    found = {str(path.relative_to(ROOT)): refused("\n".join(definitions(path))) for path in sources(folder)}
    assert {path: words for path, words in found.items() if words} == {}


# A gerund says what goes on, not what a thing is. These are nouns of the field.
NOUNS_IN_ING = frozenset(["numbering", "planning", "pruning"])


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks"])
def test_modules_are_named_by_nouns(folder: str) -> None:
    names = [path.stem for path in sources(folder) if path.stem.endswith("ing")]
    assert set(names) <= NOUNS_IN_ING


def classes(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("word", ["Kind"])
def test_a_word_that_says_little_names_one_idea(word: str) -> None:
    """Kinds of data types are `Kind`; those of others say of what: `RowKind`, `EdgeKind`, `CommitKind`."""
    found = [
        str(path.relative_to(ROOT)) for each in FOLDERS for path in sources(each) if word in classes(path)
    ]
    assert found == ["framework/types/datatype.py"]


def one_word_tests(path: Path) -> list[str]:
    """Return the tests of a module whose names have a single word, which cannot say what holds."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [each.name for each in functions if re.fullmatch(r"test_[a-z0-9]+", each.name)]


def test_names_of_tests_say_what_holds() -> None:
    found = {str(path): one_word_tests(path) for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    assert len(found) > 300
    assert {path: names for path, names in found.items() if names} == {}


def test_test_files_are_short() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py")}
    assert {str(path): count for path, count in lines.items() if count > 400} == {}


SOURCE_PATH = re.compile(r"[\w/]*\w\.(?:py|java)\b")
# Modules of the caller, in an example of a call or a made-up plugin.
IMAGINED = frozenset({"job.py"})


def absent_sources(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return, by file, the paths of sources that a text names and that are not there."""
    names = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.py"), *java_sources()]}
    for folder in [*FOLDERS, "src", "tests", "benchmarks", "examples"]:
        for ending in ("py", "java"):
            names |= {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(f"*.{ending}")}
    ends = {name[at:] for name in names for at in [0, *(m.end() for m in re.finditer("/", name))]}
    found = {
        file: [path for path in SOURCE_PATH.findall(text) if path not in ends | IMAGINED]
        for file, text in texts.items()
    }
    return {file: paths for file, paths in found.items() if paths}


def test_sources_that_comments_name_are_there() -> None:
    python = {str(path): python_text(path) for folder in FOLDERS for path in sources(folder)}
    assert absent_sources(python) == {}
    assert absent_sources({str(path): java_text(path) for path in java_sources()}) == {}


def test_absent_sources_are_found() -> None:
    text = "as lookup/codec/key_codec.py, key_codec.py and codec/keycodec.py; KeyEncoder.java, not keys.java"
    assert absent_sources({"a": text}) == {"a": ["codec/keycodec.py", "keys.java"]}


# Columns of results are read like names of variables.
def test_results_of_procedures_have_no_such_columns() -> None:
    from lockgate.framework.plugins import plugins

    found = {name: {column for column, _ in each.result} for name, each in plugins().procedures().items()}
    assert len(found) > 20
    assert {
        name: columns & RENAMED.keys() for name, columns in found.items() if columns & RENAMED.keys()
    } == {}


def types_called_kinds(path: Path) -> list[str]:
    """Return the functions of a module that call a data type `kind`: kinds are of rows, streams, commits."""
    return [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for each in [*node.args.args, *node.args.kwonlyargs]
        if each.arg == "kind" and each.annotation and ast.unparse(each.annotation).endswith("DataType")
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_data_types_are_not_called_kinds(folder: str) -> None:
    found = {str(path.relative_to(ROOT)): types_called_kinds(path) for path in sources(folder)}
    assert {path: names for path, names in found.items() if names} == {}


def openings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the functions of a module whose docstring begins with no verb, with the word it begins with.

    Tests of suites for plugins are left out: what they say is what holds.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_"):
            first, *_ = [*(ast.get_docstring(node) or "").split(), ""]
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if first in (QUESTIONS if "property" in decorators else NOUNS):
                yield node.name, first


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    found = {str(path.relative_to(ROOT)): list(openings(path)) for path in sources(folder)}
    assert {path: names for path, names in found.items() if names} == {}


def test_comments_of_java_do_not_begin_with_a_question() -> None:
    found = {path.name: JAVADOC.findall(path.read_text()) for path in java_sources()}
    assert {name: texts for name, texts in found.items() if texts} == {}


QUESTIONING = re.compile(r"^\s*(?:#|//) (?:What|Who|Whose|Whom|Which) .*", re.MULTILINE)


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks", "examples"])
def test_comments_begin_with_a_noun(folder: str) -> None:
    paths = [*sources(folder), *(java_sources() if folder == "framework" else [ROOT / "dev"])]
    found = {str(path.relative_to(ROOT)): QUESTIONING.findall(path.read_text()) for path in paths}
    assert {path: texts for path, texts in found.items() if texts} == {}
    assert QUESTIONING.findall("a = 1\n    # Which rows are kept.\n# Rows. What is lost\n")


def silenced(path: Path) -> list[str]:
    """Return the lines that silence a check and do not say why on the line itself."""
    lines = ["", *path.read_text().splitlines()]
    return [
        line.strip()
        for before, line in pairwise(lines)
        if SILENCED.search(line)
        and not WITH_REASON.search(line)
        and not (line.startswith("# mypy:") and before.startswith("# "))
    ]


@pytest.mark.parametrize("folder", [*FOLDERS, "benchmarks", "examples", "tests"])
def test_a_check_is_silenced_for_a_reason(folder: str) -> None:
    # This file holds examples of such lines.
    paths = [path for path in [*sources(folder), ROOT / "dev"] if path != Path(__file__).resolve()]
    found = {str(path.relative_to(ROOT)): silenced(path) for path in paths}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_check_of_java_is_silenced_for_a_reason() -> None:
    paths = [*java_sources(), *sorted((ROOT / "tests").rglob("*.java"))]
    found = {path.name: silenced(path) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_names_openings_and_silenced_checks_are_found(tmp_path: Path) -> None:
    python, java = tmp_path / "a.py", tmp_path / "A.java"
    python.write_text(
        'def one(known):\n    """What it is."""\n    return known.place  # type: ignore[attr-defined]\n'
        '@property\ndef two(a):\n    """The known place."""\n    return a  # noqa: B023\n'
        "    # Why it is so.\n    return a  # noqa: B023\n    return a  # type: ignore[misc]  # see above\n"
    )
    java.write_text('// a known place\n@SuppressWarnings("unchecked")\nint told = of("place");\n')
    assert python_names(python) & RENAMED.keys() == {"known", "place"}
    assert java_names(java) & RENAMED.keys() == {"told"}
    assert list(openings(python)) == [("one", "What")]
    assert silenced(python) == [
        "return known.place  # type: ignore[attr-defined]",
        *["return a  # noqa: B023"] * 2,
    ]
    java.write_text('@SuppressWarnings("unchecked")\n@SuppressWarnings("unchecked") // of one type\n')
    assert silenced(java) == ['@SuppressWarnings("unchecked")']


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
