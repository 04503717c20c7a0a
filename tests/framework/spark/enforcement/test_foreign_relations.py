"""Links below paths: each is followed, as readers do, and what leaves the folder is decided about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.framework.access import SqlDecision, Target
from lockgate.framework.spark.enforcement import foreign_relations
from lockgate.framework.spark.enforcement.foreign_relations import decide_links, leaving_links


def made(folder: Path, *files: str) -> Path:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a")
    return folder


def test_links_that_stay_lead_nowhere(tmp_path: Path) -> None:
    folder = made(tmp_path / "f", "a/x", "b/y")
    (folder / "b" / "file").symlink_to("../a/x")
    (folder / "b" / "folder").symlink_to(folder / "a")
    (folder / "b" / "loop").symlink_to(folder)
    assert list(leaving_links([str(folder), f"file:{folder}/b", "s3://bucket/a"])) == []
    (tmp_path / "link").symlink_to(folder)
    assert list(leaving_links([f"{tmp_path}/link"])) == []


def test_links_that_leave_are_found_at_every_depth(tmp_path: Path) -> None:
    folder, other, third = (tmp_path / name for name in ("f", "other", "third"))
    made(folder, "a/b/x")
    made(other, "sub/y")
    made(third, "z")
    (folder / "a" / "b" / "p=1").symlink_to(other)
    (folder / ".hidden").symlink_to(f"{folder}/../none")
    (other / "sub" / "on").symlink_to(third / "z")
    assert sorted(leaving_links([str(folder)])) == sorted(map(str, (other, third / "z", tmp_path / "none")))


def test_a_file_of_several_names_may_be_any(tmp_path: Path) -> None:
    folder = made(tmp_path / "f", "a/x")
    os.link(made(tmp_path, "secret") / "secret", folder / "a" / "hard")
    assert list(leaving_links([str(folder)])) == ["/"]
    assert list(leaving_links([str(folder / "a" / "hard")])) == ["/"]


def test_nothing_is_looked_at_behind_a_refused_link(tmp_path: Path) -> None:
    folder, other, third = (made(tmp_path / name, "x") for name in ("f", "other", "third"))
    (folder / "link").symlink_to(other)
    (other / "link").symlink_to(third)
    asked: list[str] = []

    def decide(target: Target) -> SqlDecision:
        asked.append(target.name)
        return SqlDecision(apply_for=("it",))

    relation = {"kind": "path", "paths": [str(folder)]}
    assert [each.apply_for for each in decide_links(relation, [], decide)] == [("it",)]
    assert asked == [str(other)]
    (found,) = decide_links(relation, [str(tmp_path / "other")], decide)
    assert found.apply_for == (f"the table that {other} belongs to, read by its name",)
    assert asked == [str(other)]


def test_a_file_that_vanishes_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path / "f", "gone", "x")
    entries = foreign_relations._entries

    def listed(path: str) -> list[os.DirEntry[str]]:
        found = entries(path)
        (folder / "gone").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(foreign_relations, "_entries", listed)
    assert list(leaving_links([str(folder)])) == []
