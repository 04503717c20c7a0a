"""What no linter checks: silenced checks have a reason, and sources that comments name exist."""

from __future__ import annotations

import re
import tokenize
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ("framework", "lookup", "procedures", "pushdown", "src/lockgate")
FOLDERS = (*LIBRARY, "benchmarks", "examples", "tests")
SILENCED = re.compile(r"#\s*(?:type: ignore|noqa|mypy:|ruff: noqa|pragma:)|@SuppressWarnings")
# Only mypy's settings for a whole module leave no room for a reason on the same line.
WITH_REASON = re.compile(
    r"(?:# type: ignore\[[\w,-]+\]\s+#\s*|# (?:ruff: )?noqa: [A-Z0-9, ]+ - |@SuppressWarnings\(.*\) // )\w"
)
SOURCE_PATH = re.compile(r"[\w/]*\w\.(?:py|java)\b")
# A module of the user in an example.
EXAMPLES = frozenset({"job.py"})


def sources(folder: str, ending: str) -> list[Path]:
    """Return the sources of a folder, without those behind links."""
    top = ROOT / folder
    return [path for path in sorted(top.rglob(f"*.{ending}")) if path.resolve().is_relative_to(top)]


def without_reason(path: Path) -> list[str]:
    lines = ["", *path.read_text().splitlines()]
    return [
        line.strip()
        for before, line in pairwise(lines)
        if SILENCED.search(line)
        and not WITH_REASON.search(line)
        and not (line.startswith("# mypy:") and before.startswith("# "))
    ]


def texts(path: Path) -> str:
    """Return the comments, docstrings and messages of a Python source."""
    kinds = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    with tokenize.open(path) as source:
        tokens = tokenize.generate_tokens(source.readline)
        return " ".join(token.string for token in tokens if token.type in kinds)


def test_a_check_is_silenced_for_a_reason() -> None:
    # This file holds the patterns.
    paths = [path for folder in FOLDERS for end in ("py", "java") for path in sources(folder, end)]
    lines = {
        path.name: without_reason(path) for path in [*paths, ROOT / "dev"] if path.name != Path(__file__).name
    }
    assert len(lines) > 1000
    assert {name: each for name, each in lines.items() if each} == {}


def test_a_silenced_check_without_a_reason_is_found(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("a = 1  # noqa: B023\nb = 2  # noqa: B023 - read once\n")
    assert without_reason(source) == ["a = 1  # noqa: B023"]


def test_sources_that_comments_name_are_there() -> None:
    names = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for end in ("py", "java")
        for path in sources(folder, end)
    }
    ends = {name[at:] for name in names for at in [0, *(match.end() for match in re.finditer("/", name))]}
    ends |= {path.name for path in ROOT.glob("*.py")} | EXAMPLES
    python = {path: texts(path) for folder in LIBRARY for path in sources(folder, "py")}
    java = {
        path: "\n".join(re.findall(r"//[^\n]*|/\*.*?\*/", path.read_text(), re.DOTALL))
        for path in sources("framework", "java")
    }
    absent = {
        str(path.relative_to(ROOT)): [name for name in SOURCE_PATH.findall(text) if name not in ends]
        for path, text in (python | java).items()
    }
    assert {path: found for path, found in absent.items() if found} == {}
