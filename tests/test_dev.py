"""The script `dev`: it says what it does, what is missing, and leaves the user no riddle."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
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
    for command in ("lint", "test --interop", "test --cluster --long", "test --durations"):
        assert f"./dev {command}" in run


def test_a_commit_is_checked_as_in_ci() -> None:
    """Each hook of pre-commit is a part of `./dev lint` or of the tests, and Java is among them."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for entry in (
        "ruff check",
        "ruff format --check",
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
    assert "CI=true ./dev lint" in (ROOT / ".ci" / "run").read_text()


def canonical(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def test_another_pyspark_can_be_asked_for() -> None:
    script = runpy.run_path(str(ROOT / "dev"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LOCKGATE_PYSPARK", raising=False)
        usual = script["constraints"]()
        patch.setenv("LOCKGATE_PYSPARK", "4.1")
        other = script["constraints"]()
    assert re.search(r"^py4j==", usual, re.MULTILINE)
    assert re.findall(r"^(pyspark|py4j)==(.*)$", other, re.MULTILINE) == [("pyspark", "4.1.*")]
    assert "pluggy==" in other


def test_a_server_of_4_1_gets_a_client_of_4_1() -> None:
    script = runpy.run_path(str(ROOT / "dev"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LOCKGATE_PYSPARK", raising=False)
        usual, versions = script["client_packages"]()
        patch.setenv("LOCKGATE_PYSPARK", "4.1")
        older, others = script["client_packages"]()
    assert usual[0] in versions.splitlines()
    assert older == ["pyspark-client==4.1.*", *usual[1:]]
    assert others == versions.replace(f"{usual[0]}\n", "")


LANE_OF_TESTS = """
import pytest
@pytest.mark.parametrize("number", range({count}))
def test_numbers(number):
    assert number != {bad}
    if number == {skipped}:
        pytest.skip("no reason")
"""


@pytest.fixture
def lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Run two lanes of small tests; the answer is the exit code and what was printed."""
    (tmp_path / "dev").write_text((ROOT / "dev").read_text())
    # Without Spark, whose fixtures lie next to the tests.
    conftest = (ROOT / "tests" / "conftest.py").read_text().replace('["spark_session"]', "[]")
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "tests" / "attack").mkdir(parents=True)

    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    cluster\n    long\n    slow\n")

    def run(spark: str, other: str, *arguments: str) -> tuple[int, str]:
        for name, text in (("integration", spark), ("unit", other)):
            (tmp_path / "tests" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "tests" / name / f"test_{name}.py").write_text(text)
        code = (
            "import runpy, sys; from pathlib import Path\n"
            f"script = runpy.run_path({str(tmp_path / 'dev')!r})\n"
            f"script['Lanes'].run.__globals__.update(\n"
            f"    VENV=Path({sys.prefix!r}), PROCESSES={{}}, class_archive=lambda: None)\n"
            "sys.exit(script['Lanes'](sys.argv[1:]).run())\n"
        )
        command = [sys.executable, "-c", code, "-p", "no:cacheprovider", "-p", "xdist", *arguments]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        return done.returncode, done.stderr + done.stdout

    return run


def lane(count: int, *, bad: int = -1, skipped: int = -1) -> str:
    return LANE_OF_TESTS.format(count=count, bad=bad, skipped=skipped)


def test_two_lanes_are_counted_as_one(lanes: Callable[..., tuple[int, str]]) -> None:
    code, output = lanes(lane(3), lane(4, skipped=2))
    assert (code, output.splitlines()[-1]) == (0, "6 passed, 0 failed, 1 skipped")


@pytest.mark.parametrize("where", [0, 1])
def test_a_failure_in_either_lane_fails_both(lanes: Callable[..., tuple[int, str]], where: int) -> None:
    texts = [lane(3), lane(3)]
    texts[where] = lane(3, bad=1)
    code, output = lanes(*texts)
    assert (code, output.splitlines()[-1]) == (1, "5 passed, 1 failed, 0 skipped")
    name = ("spark", "other")[where]
    report = [line for line in output.splitlines() if "assert 1 != 1" in line]
    assert report
    assert all(line.startswith(f"{name} | ") for line in report)


def test_a_lane_that_dies_is_a_failure(lanes: Callable[..., tuple[int, str]]) -> None:
    code, output = lanes(lane(2), "import os\ndef test_it():\n    os._exit(3)\n")
    assert (code, output.splitlines()[-1]) == (3, "2 passed, 1 failed, 0 skipped")


def test_a_lane_without_a_chosen_test(lanes: Callable[..., tuple[int, str]]) -> None:
    chosen = lanes(lane(2), "def test_alone(): pass\n", "-k", "alone")
    assert (chosen[0], chosen[1].splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped")
    assert lanes(lane(2), lane(2), "-k", "nothing")[0] == 5


MARKED = """
import pytest
@pytest.mark.cluster
@pytest.mark.parametrize("number", range(3))
def test_cluster(number): pass
@pytest.mark.cluster
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.long
def test_long(): pass
def test_small(): pass
"""


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_tests_of_clusters_and_long_ones_are_left_out_and_counted(
    lanes: Callable[..., tuple[int, str]], processes: tuple[str, ...]
) -> None:
    code, output = lanes(MARKED, lane(2), "-m", "not slow and not cluster and not long", *processes)
    assert (code, output.splitlines()[-1]) == (0, "3 passed, 0 failed, 0 skipped")
    assert "dev: left out 4 tests of clusters, and long ones: ./dev test --cluster --long" in output


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (set(), "not slow and not interop and not cluster and not long"),
        ({"--slow"}, "not interop and not cluster and not long"),
        ({"--cluster"}, "not slow and not interop and (cluster)"),
        ({"--cluster", "--long"}, "not slow and not interop and (cluster or long)"),
        ({"--cluster", "--slow"}, "not interop and (cluster)"),
        ({"--interop"}, "not slow and interop and not cluster and not long"),
    ],
)
def test_each_option_chooses_its_tests(asked: set[str], expected: str) -> None:
    assert runpy.run_path(str(ROOT / "dev"))["marks"](asked) == expected


def test_no_test_is_against_engines_and_on_a_cluster_at_once() -> None:
    done = dev("test", "--interop", "--cluster")
    assert done.returncode == 1
    assert "one after the other" in done.stderr


def test_every_test_is_in_one_lane() -> None:
    """Those against other engines are asked for by --interop, from their own folder."""
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if "mark.interop" in path.read_text()}
    assert marked - {Path(__file__)} == set((ROOT / "tests" / "interop").glob("test_*.py"))
    assert not [path for path in marked if "mark.cluster" in path.read_text() and path != Path(__file__)]
    script = runpy.run_path(str(ROOT / "dev"))
    spark = script["LANES"]["spark"]
    ignored = {each.partition("=")[2] for each in script["LANES"]["other"] if each.startswith("--ignore")}
    assert ignored == {*spark, *script["INTEROP_TESTS"]}
