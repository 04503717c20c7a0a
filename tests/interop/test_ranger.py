"""Ranger's own policy engine, from Maven Central, on random policies: it must decide as ours does.

Needs mvn and Java; the jars come by Maven the first time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ranger_random import asked_of, engine_of, generate

from lockgate.framework.governance.ranger.policies.definition import PolicyType

pytestmark = pytest.mark.interop

VERSION = "2.8.0"
REFEREE = Path(__file__).parent / "java" / "ranger" / "RangerReferee.java"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>ranger-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.ranger</groupId><artifactId>ranger-plugins-common</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>"""
SEEDS = range(40)
# Ranger leaves a loop over an unordered set early where any access is asked under a partial denial: its
# own answer depends on the order of that set.
MOST_DIFFERENT = len(SEEDS) // 20


@pytest.fixture(scope="session")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ranger's classes and the compiled referee."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        pytest.skip("mvn and javac are needed for Ranger's own engine")
    folder = tmp_path_factory.mktemp("ranger")
    (folder / "pom.xml").write_text(POM)
    fetch = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    done = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"Maven could not fetch Ranger's engine: {done.stdout[-300:]}")
    jars = (folder / "classpath").read_text().strip()
    subprocess.run(["javac", "-cp", jars, "-d", str(folder), str(REFEREE)], check=True, timeout=200)
    return f"{folder}:{jars}"


def test_random_policies_are_decided_as_by_ranger(class_path: str, tmp_path: Path) -> None:
    worlds = {tmp_path / f"{seed}.json": generate(seed) for seed in SEEDS}
    for path, said in worlds.items():
        path.write_text(json.dumps(said))
    command = ["java", "-cp", class_path, "RangerReferee", *map(str, worlds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-1000:]
    different, other_policy = [], 0
    for path, said in worlds.items():
        engine = engine_of(said)
        answers = [json.loads(line) for line in Path(f"{path}.out").read_text().splitlines()]
        assert len(answers) == len(said["requests"])
        for request, theirs in zip(said["requests"], answers, strict=True):
            found = engine.evaluate(asked_of(request), PolicyType(request["kind"]))
            ours = {
                "allowed": found.allowed,
                "audited": found.audited,
                "mask": found.info.get("maskType"),
                "filter": found.info.get("filterExpr"),
            }
            other_policy += found.policy != theirs.get("policy")
            if ours != {key: theirs.get(key) for key in ours}:
                different.append((path.name, request, ours, theirs))
    # Which of several policies that agree is named may differ: nothing depends on it.
    print(f"named another policy: {other_policy}")
    assert len(different) <= MOST_DIFFERENT, different[:5]
    assert all(request["accessType"] in ("", "_any") for _, request, _, _ in different), different[:5]
