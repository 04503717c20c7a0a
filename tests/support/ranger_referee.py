"""Ranger's own engine as a referee: it is asked about worlds of policies, many in one JVM."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranger_random import Said, asked_of

from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.policies.definition import PolicyType

# The interpreter of scripts warns that it has no compiler; times of day are those of the JVM's zone.
OPTIONS = ("-Dpolyglot.engine.WarnInterpreterOnly=false", "-Duser.timezone=UTC")
FIELDS = ("allowed", "audited", "mask", "maskedValue", "maskCondition", "filter")


class Referee:
    """Ranger's classes, by their class path."""

    def __init__(self, class_path: str, folder: Path) -> None:
        self._class_path, self._folder = class_path, folder

    def ask(self, worlds: Sequence[Said]) -> list[list[dict[str, Any]]]:
        """Return the answers to the requests of each world, and then to its scripts."""
        paths = [self._folder / f"{number}.json" for number in range(len(worlds))]
        for path, world in zip(paths, worlds, strict=True):
            path.write_text(json.dumps(world))
        command = ["java", *OPTIONS, "-cp", self._class_path, "RangerReferee", *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=590)
        assert done.returncode == 0, done.stderr[-1000:]
        return [_lines(Path(f"{path}.out")) for path in paths]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answer_of(engine: Engine, request: Said) -> list[object]:
    """Return our answer to a request, as far as it must be Ranger's."""
    kind = PolicyType(request["kind"])
    found = engine.evaluate(asked_of(request), kind)
    info = found.info
    mask = (info.get("maskType"), info.get("maskedValue"), info.get("maskCondition"))
    return [
        found.allowed,
        found.audited,
        *(mask if kind is PolicyType.MASK else (None,) * 3),
        info.get("filterExpr") if kind is PolicyType.FILTER else None,
    ]


def fields_of(answer: Mapping[str, Any]) -> list[object]:
    """Return the same of an answer of Ranger."""
    return [answer.get(name) for name in FIELDS]
