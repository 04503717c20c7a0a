"""The script `dev`: it says what it does, what is missing, and leaves the user no riddle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def dev(*arguments: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(folder / "dev"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_command() -> None:
    done = dev("--help")
    assert done.returncode == 0
    for command in ("demo", "test", "bench", "lint", "docs", "build"):
        assert f"./dev {command}" in done.stdout


def test_an_unknown_command() -> None:
    done = dev("tset")
    assert done.returncode == 1
    assert "no command 'tset'" in done.stderr


def test_without_a_jdk_it_names_the_package(tmp_path: Path) -> None:
    done = dev("build", PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "openjdk-17-jdk-headless" in done.stderr


def test_links_that_git_made_plain_files(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dev", tmp_path / "dev")
    (tmp_path / "src" / "lockgate").mkdir(parents=True)
    (tmp_path / "src" / "lockgate" / "framework").write_text("../../framework")
    done = dev("build", folder=tmp_path)
    assert done.returncode == 1
    assert "core.symlinks" in done.stderr


def test_the_script_can_be_run() -> None:
    assert os.access(ROOT / "dev", os.X_OK)
    assert (ROOT / ".ci" / "run").read_text().count("./dev") >= 3


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_usual_files_are_there(name: str) -> None:
    assert len((ROOT / name).read_text()) > 200
