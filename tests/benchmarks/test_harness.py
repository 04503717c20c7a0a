"""The benchmarks' harness: fair turns, medians of paired ratios, one JSON line a figure."""

import importlib.util
import json
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "harness.py"


@pytest.fixture(scope="module")
def harness():
    spec = importlib.util.spec_from_file_location("lockgate_benchmark_harness", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_take_turns_and_the_order_turns_round(harness):
    calls = []
    functions = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    seconds = harness.interleaved(functions, 2, warm_up=2)
    assert "".join(calls) == "abbaabba"
    assert {name: len(times) for name, times in seconds.items()} == {"a": 2, "b": 2}


def test_ratio_is_the_median_of_pairs(harness):
    assert harness.ratio([1, 9, 2], [1, 3, 1]) == 2
    with pytest.raises(ValueError, match="zip"):
        harness.ratio([1], [1, 2])


def test_figures_are_json_lines(harness, capsys):
    harness.emit("main", "rate", 123456.7, "rows/s")
    harness.emit("main", "share", 0.123456, "ratio", "plain: 1 s")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {
        "bench": "main",
        "metric": "rate",
        "value": 123457,
        "unit": "rows/s",
        "baseline": None,
    }
    assert lines[1]["value"] == 0.1235
    assert lines[1]["baseline"] == "plain: 1 s"


def test_remarks_keep_standard_output_clean(harness, capsys):
    harness.describe_machine()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cores" in captured.err
