"""The script `dev`: it says what it does, what is missing, and leaves the user no riddle."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    for command in ("demo", "test", "bench", "lint", "lint-java", "docs", "build"):
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
    run = (ROOT / ".ci" / "run").read_text()
    for command in ("lint", "test", "test --rest"):
        assert f"./dev {command}\n" in run
    assert "||" not in run, "a test that fails is not tried again"


def test_a_commit_is_checked_as_in_ci() -> None:
    """Each hook of pre-commit is a part of `./dev lint` or of the tests, and Java is among them."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for entry in (
        "ruff check",
        "ruff format --check",
        "lint-imports",
        "mypy",
        "dev lint-java",
    ):
        assert entry in hooks
    assert "types: [java]" in hooks


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASING.md"])
def test_the_usual_files_are_there(name: str) -> None:
    assert len((ROOT / name).read_text()) > 200


def test_every_dependency_has_one_version() -> None:
    """What ./dev installs is named in constraints.txt, whatever others release concurrently."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    wanted += [each for group in project["dependency-groups"].values() for each in group]
    names = {canonical(re.split(r"[\[<>=;]", each)[0]) for each in wanted}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonical(line.partition("==")[0]) for line in lines if "==" in line}
    assert sorted(names - pinned) == []


@pytest.mark.parametrize(
    ("packages", "file"),
    [("INTEROP_PACKAGES", "constraints-interop.txt"), ("CLIENT_PACKAGES", "constraints-clients.txt")],
)
def test_every_package_of_the_other_environments_has_one_version(packages: str, file: str) -> None:
    wanted = runpy.run_path(str(ROOT / "dev"))[packages]
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    pinned = dict(line.split("==") for line in lines)
    assert {canonical(re.split(r"[<>=]", each)[0]) for each in wanted} <= {canonical(each) for each in pinned}
    assert len(pinned) > len(wanted), "what they depend on too"


def test_the_formatter_of_java_may_not_be_missing_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    script = runpy.run_path(str(ROOT / "dev"))
    monkeypatch.setitem(script["lint_java"].__globals__, "java_formatter", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    assert script["lint_java"]([]) == 0
    monkeypatch.setenv("CI", "true")
    assert script["lint_java"]([]) == 1
    assert "export CI=true\n./dev lint" in (ROOT / ".ci" / "run").read_text()


def canonical(name: str) -> str:
    return name.strip().lower().replace("_", "-")


@pytest.fixture
def sparks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The script, with a folder of each Spark that was fetched before."""
    script = runpy.run_path(str(ROOT / "dev"))
    known = script["use_spark"].__globals__
    monkeypatch.setitem(known, "spark_folder", lambda minor: Path(f"/sparks/{minor}"))
    monkeypatch.setitem(known, "make_main_venv", lambda: None)
    monkeypatch.setenv("PYTHONPATH", "/before")
    monkeypatch.delenv("LOCKGATE_SPARK", raising=False)
    return script


def test_another_spark_can_be_asked_for(sparks: dict[str, Any]) -> None:
    assert sparks["use_spark"](["--spark", "4.1", "tests/lookup", "-x"]) == ["tests/lookup", "-x"]
    assert os.environ["PYTHONPATH"] == "/sparks/4.1:/before"
    assert sparks["class_archive"]() is None, "it is of the installed Spark"
    assert sparks["use_spark"](["-x"]) == ["-x"]


def test_the_life_of_a_spark_says_which_tests_run(sparks: dict[str, Any]) -> None:
    lives = {minor: each["life"] for minor, each in sparks["sparks"]().items()}
    for minor, life in lives.items():
        chosen = sparks["use_spark"](["--spark", minor])
        assert ("--all" if life == "current" else "tests/attack") in chosen
        assert all((ROOT / each).exists() for each in chosen if each.startswith("tests"))
        assert len(chosen) == {"current": 1, "deprecated": 2}.get(life, len(chosen))
    assert lives[sparks["installed_spark"]()] == "current"
    with pytest.raises(SystemExit, match=r"one of 4\.0, 4\.1"):
        sparks["use_spark"](["--spark", "3.5"])


def test_ci_tests_every_spark(sparks: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert sparks["print_sparks"]() == 0
    others = json.loads(capsys.readouterr().out)
    assert {*others, sparks["installed_spark"]()} == sparks["sparks"]().keys()
    assert "./dev sparks" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_a_server_of_an_old_spark_gets_a_client_of_its_own(
    sparks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, versions = sparks["client_packages"]()
    assert usual[0] in versions.splitlines()
    monkeypatch.setenv("LOCKGATE_SPARK", "4.1")
    older, others = sparks["client_packages"]()
    assert older == ["pyspark-client==4.1.*", *usual[1:]]
    assert others == versions.replace(f"{usual[0]}\n", "")


TESTS = """
import pytest
@pytest.mark.parametrize("number", range({count}))
def test_numbers(number):
    assert number != {bad}
    if number == {skipped}:
        pytest.skip("no reason")
"""
SHAKY = """
import pytest
@pytest.mark.{quarantine}(reason="its clock")
@pytest.mark.parametrize("number", range(3))
def test_shaky(number): assert number
"""


@pytest.fixture
def run_tests(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Let `./dev test` run files of small tests, one after the other: the exit code, and what was printed."""
    (tmp_path / "tests" / "support").mkdir(parents=True)
    for name in ("dev", "tests/support/choice.py", "tests/support/costs.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "costs.json").write_text("{}")
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['choice']")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = tests/support\nmarkers = quarantine\n")

    def run(*runs: list[str], **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / "tests" / f"test_{name}.py").write_text(text)
        code = (
            "import os, runpy, sys; from pathlib import Path\n"
            f"script = runpy.run_path({str(tmp_path / 'dev')!r})\n"
            f"script['run_tests'].__globals__.update(VENV=Path({sys.prefix!r}))\n"
            f"sys.exit(script['run_tests']({[['-p', 'no:cacheprovider', *each] for each in runs]!r}, {{}}))\n"
        )
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        return done.returncode, done.stderr + done.stdout

    return run


def numbers(count: int, *, bad: int = -1, skipped: int = -1) -> str:
    return TESTS.format(count=count, bad=bad, skipped=skipped)


A, B = ["tests/test_a.py"], ["tests/test_b.py"]


@pytest.mark.parametrize(
    ("runs", "files", "expected"),
    [
        ([A, B], {"a": numbers(3), "b": numbers(4, skipped=2)}, (0, "6 passed, 0 failed, 1 skipped")),
        ([A, B], {"a": numbers(3, bad=1), "b": numbers(3)}, (1, "5 passed, 1 failed, 0 skipped")),
        ([A, B], {"a": numbers(3), "b": numbers(3, bad=1)}, (1, "5 passed, 1 failed, 0 skipped")),
        ([A, B], {"a": "import os\nos._exit(3)", "b": numbers(2)}, (3, "2 passed, 1 failed, 0 skipped")),
        (
            [[*A, "-k", "alone"], [*B, "-k", "alone"]],
            {"a": numbers(2), "b": "def test_alone(): pass"},
            (0, "1 passed, 0 failed, 0 skipped"),
        ),
        ([[*A, "-k", "nothing"]], {"a": numbers(2)}, (5, "0 passed, 0 failed, 0 skipped")),
    ],
)
def test_runs_are_counted_as_one(
    run_tests: Callable[..., tuple[int, str]],
    runs: list[list[str]],
    files: dict[str, str],
    expected: tuple[int, str],
) -> None:
    code, output = run_tests(*runs, **files)
    assert (code, output.splitlines()[-1]) == expected


def test_tests_in_quarantine_are_reported_and_fail_nothing(
    run_tests: Callable[..., tuple[int, str]],
) -> None:
    shaky = SHAKY.format(quarantine="quarantine")
    code, output = run_tests(["tests"], ["--quarantined", "tests"], a=numbers(2), b=shaky)
    assert (code, output.splitlines()[-1]) == (0, "2 passed, 0 failed, 0 skipped")
    assert "dev: in quarantine: 2 passed, 1 failed, 0 skipped\n" in output
    assert "test_shaky[0]" in output
    code, output = run_tests(["tests"], b=shaky.replace("its clock", " "))
    assert (code, output.splitlines()[-1]) == (4, "0 passed, 1 failed, 0 skipped")
    assert "test_shaky[0]: why? Write" in output


USUAL, INTEROP = "not slow and not interop", ["-m", "not slow and interop", "tests/interop"]


@pytest.mark.parametrize(
    ("asked", "paths", "expected"),
    [
        (set(), [], [["--cheap"]]),
        ({"all"}, [], [["-m", USUAL], INTEROP]),
        ({"rest"}, [], [["--rest", "-m", USUAL], INTEROP]),
        ({"slow"}, [], [["-m", "not interop and not cluster and not long"]]),
        ({"interop"}, [], [INTEROP]),
        (set(), ["tests/cli"], [["-m", USUAL]]),
        ({"slow"}, ["tests/cli"], [["-m", "not interop"]]),
        (set(), ["tests/interop/test_tags.py::test_a"], [["-m", "not slow and interop"]]),
        ({"cluster", "slow"}, ["tests/cli"], [["-m", "not interop and (cluster)"]]),
        ({"cluster", "long"}, ["tests/cli"], [["-m", f"{USUAL} and (cluster or long)"]]),
    ],
)
def test_each_option_chooses_its_tests(asked: set[str], paths: list[str], expected: list[list[str]]) -> None:
    assert runpy.run_path(str(ROOT / "dev"))["chosen"](asked, paths) == expected


def test_properties_are_tried_less_where_everybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = runpy.run_path(str(ROOT / "dev"))["effort_of"]
    monkeypatch.delenv("CI", raising=False)
    little = ["--hypothesis-profile=dev"]
    assert effort([], set(), []) == effort(["--costs"], {"all"}, []) == little
    assert effort([], {"all"}, []) == effort([], set(), ["tests/cli"]) == []
    monkeypatch.setenv("CI", "true")
    assert effort([], set(), []) == []
    assert effort(["--costs"], {"all"}, []) == little


@pytest.mark.parametrize("asked", [("--interop", "--cluster"), ("--all", "--rest"), ("--all", "--long")])
def test_options_that_choose_different_tests(asked: tuple[str, str]) -> None:
    chosen = runpy.run_path(str(ROOT / "dev"))["chosen"]
    with pytest.raises(SystemExit, match="one after the other"):
        chosen({each.removeprefix("--") for each in asked}, [])


def test_every_test_against_other_engines_is_in_their_folder() -> None:
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if "mark.interop" in path.read_text()}
    assert marked - {Path(__file__)} == set((ROOT / "tests" / "interop").glob("test_*.py"))
    assert not [path for path in marked if "mark.cluster" in path.read_text() and path != Path(__file__)]


def test_no_file_but_those_with_such_tests_is_run_for_quarantine() -> None:
    found = runpy.run_path(str(ROOT / "dev"))["marked_tests"](["quarantine"])
    assert str(Path(__file__).relative_to(ROOT)) not in found
