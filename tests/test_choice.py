"""`./dev test` runs what is cheap, of every file; what a test costs is measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from choice import CollectedTest, default_set
from costs import absent_from, listed, updated

SUPPORT = Path(__file__).parent / "support"


def collected(name: str, *marks: str, limit: float = 0.2) -> CollectedTest:
    return CollectedTest(name, frozenset(marks), limit)


def test_what_is_cheap_or_not_listed_runs() -> None:
    tests = [
        collected("a::dear"),
        collected("a::cheap"),
        collected("a::new"),
        collected("a::spark", limit=1.0),
    ]
    assert default_set(tests, {"a::dear": 0.25, "a::spark": 1.0}) == {"a::cheap", "a::new", "a::spark"}


def test_the_cheapest_test_of_a_file_runs_in_any_case() -> None:
    tests = [collected("a::one"), collected("a::two"), collected("b::one")]
    assert default_set(tests, {"a::one": 4, "a::two": 2, "b::one": 8}) == {"a::two", "b::one"}


def test_marked_tests_run_elsewhere_but_a_file_of_long_ones_is_touched() -> None:
    tests = [
        collected("a::short"),
        collected("a::long", "long"),
        collected("b::one", "long"),
        collected("b::two", "long"),
    ]
    tests += [
        collected("c::here", "cluster"),
        collected("d::there", "interop"),
        collected("e::late", "slow", "long"),
    ]
    assert default_set(tests, {"b::one": 8}) == {"a::short", "b::two"}


def test_a_cost_stays_until_it_has_changed_much() -> None:
    before = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "gone": 2.0, "not run": 4.0}
    measured = {"a": (0.3, 0.2), "b": (1.2, 0.2), "c": (1.3, 0.2), "d": (0.1, 0.2)}
    measured |= {"new": (0.21, 0.2), "cheap": (0.2, 0.2), "spark": (0.9, 1.0)}
    expected = {"a": 1.0, "b": 1.0, "c": 2.0, "new": 0.25, "not run": 4.0}
    assert updated(before, measured, ["gone"]) == expected


def test_absent_tests(tmp_path: Path) -> None:
    (tmp_path / "there.py").touch()
    names = ["there.py::renamed", "there.py::kept", "there.py::row[old]", "away.py::test"]
    collected = {"there.py::kept", "there.py::row[new]"}
    assert absent_from(dict.fromkeys(names, 1.0), collected, tmp_path) == [names[0], names[2], names[3]]
    assert absent_from(dict.fromkeys(names, 1.0), {"other.py::test"}, tmp_path) == ["away.py::test"]


def test_the_list_is_as_it_is_written() -> None:
    found = listed()
    assert list(found) == sorted(found)
    assert all(cost > 0.15 and cost.hex().startswith("0x1.0000000000000p") for cost in found.values())


BURN = """
import subprocess, sys, time
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="session")
def session():
    burn(0.6)

@pytest.fixture(scope="module")
def module():
    burn(0.6)

def test_first(session): pass
def test_own(): burn(0.3)
def test_child():
    code = "import time\\nwhile time.process_time() < 0.6: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
def test_half(module): pass
def test_other_half(module): pass
@pytest.mark.slow
def test_slow(): burn(0.3)
"""
COUNTED = """
import pytest
@pytest.fixture
def fresh(): return []
@pytest.mark.parametrize("letter", "ab")
def test_letters(letter, fresh):
    fresh.append(letter)
    assert fresh == [letter]
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run pytest on one file with the plugin: the exit code, and what was printed."""
    (tmp_path / "tests" / "support").mkdir(parents=True)
    for name in ("choice.py", "costs.py"):
        shutil.copy(SUPPORT / name, tmp_path / "tests" / "support" / name)
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['choice']")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = tests/support\nmarkers = slow\n")

    def start(text: str, costs: dict[str, float], *arguments: str) -> tuple[int, str]:
        (tmp_path / "tests" / "costs.json").write_text(json.dumps(costs))
        (tmp_path / "tests" / "test_it.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )
        return done.returncode, done.stdout + done.stderr

    return start


IT = "tests/test_it.py::"


@pytest.mark.parametrize("processes", [(), ("-n", "2", "--dist", "loadfile")])
def test_costs_are_measured_and_written(
    run: Callable[..., tuple[int, str]], tmp_path: Path, processes: tuple[str, ...]
) -> None:
    code, output = run(BURN, {f"{IT}test_renamed": 1.0}, "--costs", *processes)
    assert code == 0, output
    found = json.loads((tmp_path / "tests" / "costs.json").read_text())
    assert found.keys() == {IT + name for name in ("test_own", "test_child", "test_half", "test_other_half")}
    assert found[f"{IT}test_child"] >= 1.0


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_dear_tests_are_left_out_counted_and_the_rest(
    run: Callable[..., tuple[int, str]], processes: tuple[str, ...]
) -> None:
    costs = {f"{IT}test_letters[a]": 0.5, f"{IT}test_renamed[a]": 1.0}
    code, output = run(COUNTED, costs, "--cheap", "-v", *processes)
    assert code == 0
    assert "test_letters[b]" in output
    assert "test_letters[a]" not in output
    assert "left out 1 tests, which CI runs: ./dev test --rest" in output
    assert f"tests that are not there: {IT}test_renamed;" in output
    code, output = run(COUNTED, costs, "--rest", "-v", *processes)
    assert code == 0
    assert "test_letters[a]" in output
    assert "test_letters[b]" not in output


def test_each_test_is_repeated_with_fixtures_of_its_own(run: Callable[..., tuple[int, str]]) -> None:
    code, output = run(COUNTED, {}, "--repeat", "3")
    assert (code, "6 passed" in output) == (0, True)
    code, output = run(COUNTED, {}, "--repeat", "3", "--costs")
    assert (code, "leave out --repeat" in output) == (4, True)
