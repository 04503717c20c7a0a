"""Ranger's own test cases, put to our engine.

`tests/fixtures/ranger` has about two thirds of them, laid out as Ranger lays them out in `agents-common`.
A folder `ranger` of `LOCKGATE_TESTDATA` with all of them takes its place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lockgate.framework.governance.ranger.cases import asked_of, differences, instant, roles_of, settings_of
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.policies.deltas import updated

_WHOLE = Path(os.environ.get("LOCKGATE_TESTDATA", "/nonexistent")) / "ranger"
ROOT = _WHOLE if _WHOLE.exists() else Path(__file__).parents[1] / "fixtures" / "ranger"
__all__ = ["ROOT", "asked_of", "cases", "differences", "instant", "load"]
# Addresses that Ranger's own runner takes for proxies: the one they forward for counts.
PROXIES = {"255.255.255.255", "128.101.101.101", "128.101.101.99"}
Said = Mapping[str, Any]


def load(path: Path) -> Any:
    """Read JSON as Gson does, which lets comments pass."""
    return json.loads(re.sub(r"(?m)#[^\"\n]*$", "", path.read_text()), object_hook=_without_proxies)


def _without_proxies(said: dict[str, Any]) -> dict[str, Any]:
    if said.get("remoteIPAddress") in PROXIES and said.get("forwardedAddresses"):
        return {**said, "remoteIPAddress": said["forwardedAddresses"][0]}
    return said


def tags_of(said: Said) -> Said | None:
    """Return the tags that a case file names in its tag service's definition."""
    definition = (said.get("tagPolicyInfo") or said.get("tagPolicies") or {}).get("serviceDef") or {}
    for enricher in definition.get("contextEnrichers") or ():
        name = (enricher.get("enricherOptions") or {}).get("serviceTagsFileName")
        if name:
            return load(ROOT / name.lstrip("/"))  # type: ignore[no-any-return]  # JSON
    return None


def policies_of(said: Said) -> dict[str, Any]:
    if said.get("servicePolicies"):
        return dict(said["servicePolicies"])
    keys = ("serviceDef", "policies", "securityZones", "serviceConfig", "auditMode")
    found = {key: said.get(key) for key in keys}
    tags = said.get("tagPolicyInfo")
    if tags:
        found["tagPolicies"] = {**tags, "policies": tags.get("tagPolicies")}
    return found


def engine_of(policies: Said, said: Said) -> Engine:
    return Engine(
        policies, roles=roles_of(said), tags=tags_of(said), settings=settings_of(said), strict=False
    )


def cases(said: Said) -> Iterator[tuple[Engine, Said]]:
    """Yield each case of a file with the engine it is for: some files change policies on the way."""
    policies = policies_of(said)
    engine = engine_of(policies, said)
    yield from ((engine, case) for case in said.get("tests") or ())
    steps = said.get("testsInfo") or ([said] if said.get("updatedPolicies") else [])
    for step in [steps] if isinstance(steps, dict) else steps:
        if said.get("testsInfo"):
            yield from ((engine, case) for case in step.get("tests") or ())
        policies = updated(policies, step.get("updatedPolicies") or policies)
        engine = engine_of(policies, said)
        yield from ((engine, case) for case in step.get("updatedTests") or ())
