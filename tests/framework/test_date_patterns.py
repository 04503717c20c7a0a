"""Java's date patterns, by vectors that Java itself answered."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lockgate.errors import InputError
from lockgate.framework.types import date_pattern, parse_iso_date, parse_iso_datetime

TESTS = Path(__file__).parents[1]
FILE = TESTS / "fixtures" / "date_patterns.json"
VECTORS = json.loads(FILE.read_text())
GENERATOR = TESTS / "java" / "io" / "lockgate" / "types" / "DatePatternVectors.java"


def test_texts_are_parsed_as_in_java() -> None:
    others = []
    for case in VECTORS["parsed"]:
        expected = case["time"] and datetime.datetime.fromisoformat(case["time"])
        parsed = date_pattern(case["pattern"]).parse(case["text"])
        if parsed != expected:
            others.append((case, parsed))
    assert others == []


def test_times_are_formatted_as_in_java() -> None:
    for case in VECTORS["formatted"]:
        time = datetime.datetime.fromisoformat(case["time"])
        assert date_pattern(case["pattern"]).format(time) == case["text"], case


@pytest.mark.parametrize("pattern", VECTORS["refused"])
def test_patterns_that_java_refuses_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="is not a pattern of times"):
        date_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "yyyyMM", "HH:mm", "MMdd", "dd", "YYYYMMdd", "yyyy-MMM-dd", "yyyy-ww-e"]
)
def test_patterns_without_a_date_or_of_a_language_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="is not a pattern of times"):
        date_pattern(pattern)


@pytest.mark.parametrize("pattern", ["[" * 600 + "yyyy-MM-dd", "yyyy-MM-dd'" + "x" * 100_000, "y" * 100_000])
def test_long_patterns_are_refused_without_their_text(pattern: str) -> None:
    with pytest.raises(InputError, match="characters, more than 200") as refused:
        date_pattern(pattern)
    assert len(str(refused.value)) < 120


def test_optional_parts_nest_to_a_bounded_depth() -> None:
    text = "yyyy-MM-dd" + "[' ']" * 10
    for depth in range(15):
        text = f"[{text}]" if depth else text
    pattern = date_pattern(text)
    assert pattern.parse("2026-01-31") == datetime.datetime(2026, 1, 31)
    with pytest.raises(InputError, match="nested deeper than 15 levels"):
        date_pattern("[" * 16 + "yyyy-MM-dd" + "]" * 16)


def test_java_still_gives_these_vectors() -> None:
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        pytest.skip("a JDK is needed")
    command = [java, "-Xmx64m", "-XX:TieredStopAtLevel=1", str(GENERATOR)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == FILE.read_text()


@pytest.mark.parametrize("text", ["20260131", "2026-W05", "2026-W05-1", "2026-1-5", "2026-01-31 ", ""])
def test_a_date_has_one_form(text: str) -> None:
    assert parse_iso_date("2026-01-31") == datetime.date(2026, 1, 31)
    assert parse_iso_datetime("2026-01-31T12:30:00.5+01:00").microsecond == 500_000
    for parse in (parse_iso_date, parse_iso_datetime):
        with pytest.raises(ValueError, match="is written"):
            parse(text)
