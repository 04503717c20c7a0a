"""The facts about a cached state, as they go through pipes and files."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.version_info import CacheVersionInfo, refusal_of

INFO = CacheVersionInfo(7, "mark", 10, 1000, 3, True, 0.25, 1_700_000_000_000, "memory")
FILE = Path("/cache/generations/7/GENERATION.json")


def test_facts_are_read_as_they_were_written() -> None:
    written = json.loads(json.dumps(INFO.to_json()))
    assert set(written) == {each.name for each in fields(CacheVersionInfo)}
    assert CacheVersionInfo.of_file(written, FILE) == INFO


def test_a_state_from_before_there_was_a_choice_is_full() -> None:
    written = {name: value for name, value in INFO.to_json().items() if name != "storage"}
    assert CacheVersionInfo.of_file(written, FILE).storage == "full"


@pytest.mark.parametrize("name", [each.name for each in fields(CacheVersionInfo) if each.name != "storage"])
def test_a_fact_that_is_missing_or_of_another_kind_is_named(name: str) -> None:
    written = {key: value for key, value in INFO.to_json().items() if key != name}
    with pytest.raises(LookupCacheError, match=f"{FILE} is damaged or of another version: {name} is missing"):
        CacheVersionInfo.of_file(written, FILE)
    with pytest.raises(LookupCacheError, match=f"{name} is not a "):
        CacheVersionInfo.of_file({**written, name: []}, FILE)


def test_a_refusal_without_a_kind_or_a_message_is_damaged() -> None:
    assert refusal_of({"type": "T", "message": "m"}, FILE) == {"type": "T", "message": "m"}
    for name in ("type", "message"):
        with pytest.raises(LookupCacheError, match="is missing"):
            refusal_of({name: "x"}, FILE)
