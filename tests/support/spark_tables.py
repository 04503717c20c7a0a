"""The tables of Sparks in the documentation, of `spark_versions.toml`."""

from __future__ import annotations

import tomllib
from typing import Any

from lockgate.framework.spark.java.build_connector import SPARKS, in_range

_TESTS = {
    "current": ("the two newest minors, and the minor with long support", "all"),
    "maintained": ("", "it links; scans, policies, attacks, lookups, a small lake"),
    "deprecated": ("`connect` warns", "it links; attacks, a small lake"),
}
_FIRST_PYTHON = "3.11"


def table(name: str) -> str:
    """Return the table `lives` or `features` in Markdown."""
    known = tomllib.loads(SPARKS.read_text(encoding="utf-8"))
    return "\n".join(f"| {' | '.join(row)} |" for row in _TABLES[name](known["spark"], known["feature"]))


def _lives(sparks: list[dict[str, Any]], _: list[dict[str, str]]) -> list[list[str]]:
    rows = [["life", "Spark today", "tests"], ["---"] * 3]
    for life, (meaning, tests) in _TESTS.items():
        found = [
            f"{each['minor']}, which Spark itself supported until {each['ended']}"
            if "ended" in each
            else each["minor"]
            for each in reversed(sparks)
            if each["life"] == life
        ]
        rows.append([f"{life}: {meaning}" if meaning else life, ", ".join(found), tests])
    return [*rows, ["removed", "3.5 and older", "none: there is no connector"]]


def _features(sparks: list[dict[str, Any]], features: list[dict[str, str]]) -> list[list[str]]:
    minors = [each["minor"] for each in sparks]
    rows = [["", *minors], ["---"] * (len(minors) + 1)]
    for feature in features:
        rows.append([feature["name"], *(_cell(feature, minor) for minor in minors)])
    pythons = [f"{_FIRST_PYTHON} to {each['last-python']}" for each in sparks]
    rows.append(["Python, by pyspark's own list", *pythons])
    return [*rows, ["Java, by Spark's own list", *(", ".join(map(str, each["java"])) for each in sparks)]]


def _cell(feature: dict[str, str], minor: str) -> str:
    """Return what a feature is in a minor, which one of its ranges must hold."""
    (found,) = (text for key, text in feature.items() if key != "name" and in_range(key, minor))
    return found


_TABLES = {"lives": _lives, "features": _features}
