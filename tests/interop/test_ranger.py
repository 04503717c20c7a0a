"""Ranger's own policy engine, from Maven Central, on random policies: it must decide as ours does.

Needs mvn and Java; the jars come by Maven the first time.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from ranger_random import SHAPES, asked_of, engine_of, generate
from ranger_referee import Referee, answer_of, fields_of
from ranger_scripts import script

from lockgate.framework.governance.ranger.conditions.environment import KNOWN, Environment
from lockgate.framework.governance.ranger.conditions.script import compiled
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError

pytestmark = pytest.mark.interop

# 101,600 decisions: 400 a seed, 120 where items have conditions. A batch of each shape is not slow.
BATCHES = [
    pytest.param(shape, start, start + size, marks=[pytest.mark.slow] if start else [])
    for shape, seeds, size in (("resources", 100, 25), ("tags", 130, 26), ("conditions", 80, 16))
    for start in range(0, seeds, size)
]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "ranger"


@pytest.fixture
def ranger(ranger_classes: str, tmp_path: Path) -> Referee:
    return Referee(ranger_classes, tmp_path)


@pytest.mark.parametrize(("shape", "start", "end"), BATCHES)
def test_random_policies_are_decided_as_by_ranger(ranger: Referee, shape: str, start: int, end: int) -> None:
    worlds = [generate(seed, SHAPES[shape]) for seed in range(start, end)]
    different = []
    for world, answers in zip(worlds, ranger.ask(worlds), strict=True):
        engine = engine_of(world)
        for request, theirs in zip(world["requests"], answers, strict=True):
            ours = answer_of(engine, request)
            if ours != fields_of(theirs):
                different.append(({**world, "requests": [request]}, ours))
    # What Ranger's engine answers depends on what it was asked before: until each item of a policy was asked
    # once, it asks policies that have nothing to say. An engine that was asked nothing decides here.
    again = [answers[0] for answers in ranger.ask([world for world, _ in different])] if different else []
    print(f"{len(different)} of {shape} {start} to {end} asked again")
    wrong = [
        (world["requests"], ours, theirs)
        for (world, ours), theirs in zip(different, again, strict=True)
        if ours != fields_of(theirs)
    ]
    assert not wrong, wrong[:3]
    assert len(different) <= 10


def test_kept_answers_are_rangers(ranger: Referee) -> None:
    """The vectors of the tests that need no Java: the first seeds of each shape."""
    kept = json.loads((FIXTURES / "decisions.json").read_text())
    names = [(shape, int(seed)) for shape, seeds in kept.items() for seed in seeds]
    worlds = [generate(seed, SHAPES[shape]) for shape, seed in names]
    for (shape, seed), answers in zip(names, ranger.ask(worlds), strict=True):
        assert [fields_of(each) for each in answers] == kept[shape][str(seed)], f"{shape} {seed}"


def test_kept_answers_to_scripts_are_rangers(ranger: Referee) -> None:
    kept = json.loads((FIXTURES / "conditionevaluator" / "answers.json").read_text())
    world = generate(0, SHAPES["conditions"])
    world["requests"] = [kept["request"]]
    world["scripts"] = [{"request": 0, "script": each} for each in kept["scripts"]]
    (answers,) = ranger.ask([world])
    found = [[each["holds"], each.get("value")] for each in answers[1:]]
    assert dict(zip(kept["scripts"], found, strict=True)) == kept["scripts"]


def test_random_scripts_hold_as_in_ranger_or_are_refused(ranger: Referee) -> None:
    kept = json.loads((FIXTURES / "conditionevaluator" / "answers.json").read_text())
    rnd = random.Random(2)
    scripts = [script(rnd) for _ in range(1_500)]
    world = {**generate(0, SHAPES["conditions"]), "requests": [kept["request"]]}
    world["scripts"] = [{"request": 0, "script": each} for each in scripts]
    (answers,) = ranger.ask([world])
    asked = engine_of(world).prepared(asked_of(kept["request"]))
    refused = 0
    for text, theirs in zip(scripts, answers[1:], strict=True):
        try:
            ours = compiled(text, KNOWN).holds(Environment(asked))
        except ScriptError:
            refused += 1
        else:
            assert ours == theirs["holds"], text
    assert refused < 200
