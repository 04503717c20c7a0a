"""Options are known to tables, documented, and joined with those of a call."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from lockgate.errors import OptionError
from lockgate.framework.options.table_options import TableOptions, known_options
from lockgate.lookup.spec import cache_paths
from lockgate.lookup.spec.cache_paths import local_root
from lockgate.lookup.spec.lookup_options import (
    ALL,
    CACHE_DIR,
    hint_options,
    lookup_options,
    option_texts,
)

DOCS = Path(__file__).parents[3] / "docs" / "lookup.md"


def test_every_option_is_documented_and_known_to_tables() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for option in ALL:
        assert f"`{option.key}`" in text, option.key
        assert known_options()[option.key] is option
    with pytest.raises(OptionError, match=r"lookup\.refresh\.async"):
        TableOptions({"lookup.refresh.async": "often"})


def test_the_call_wins_over_the_table() -> None:
    table = {"lookup.refresh.async": "false", "lookup.cache-dir": "/table", "bucket": "1"}
    joined = lookup_options(table, {"lookup.cache-dir": "/call"})
    assert joined.refresh_async is False
    assert joined.cache_dir == "/call"
    assert lookup_options({**table, "bucket": "2"}, {"lookup.cache-dir": "/call"}) is joined, "parsed once"
    assert lookup_options(table, {"lookup.cache-dir": "/other"}).cache_dir == "/other"
    with pytest.raises(FrozenInstanceError):
        joined.cache_dir = "/later"  # type: ignore[misc]  # it is frozen
    assert CACHE_DIR.default == ""


def test_the_folder_without_the_option_is_the_users_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache_paths.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache_paths.os, "getuid", lambda: 1234)
    assert local_root(lookup_options({}, {}).cache_dir) == tmp_path / "lockgate-lookup-1234"


def test_options_of_a_call_may_be_values() -> None:
    assert option_texts({"a": 1, "b": False, "c": "d"}) == {"a": "1", "b": "False", "c": "d"}
    with pytest.raises(OptionError, match=r"'lookup\.cache-dir' has no value: leave it out"):
        option_texts({"lookup.cache-dir": None})
    with pytest.raises(OptionError, match="not an address"):
        lookup_options({}, {"lookup.cache-dir": "s3a://bucket/caches"})


def test_options_of_hints() -> None:
    assert hint_options({"async": "true", "capacity": "10", "max-attempts": "2", "shuffle": "true"}) == {
        "max-attempts": "2",
        "shuffle": "true",
    }
    for given, message in (
        ({"max-attempt": "2"}, "unknown option 'max-attempt' of a lookup join; did you mean 'max-attempts'"),
        ({"lookup.cach": "full"}, r"did you mean 'lookup\.cache'"),
        ({"output-mode": "any"}, "output-mode.*allow_unordered"),
        ({"capacity": "0"}, "capacity"),
    ):
        with pytest.raises(OptionError, match=message):
            hint_options(given)
