"""The wheel: it carries the connector, and the front page's snippet runs from it with a JRE only."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lockgate.framework.spark.bridge import connector_jars
from lockgate.framework.spark.java import build_connector
from lockgate.framework.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
JARS = "framework/spark/jars"
NOT_IN_A_JRE = {"javac", "jar", "jshell", "javadoc"}
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "*.jar", "tests", "docs"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources and of the jar, so that nothing is built inside the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=LEFT_OUT)
    # Of the jars that a checkout has, those that ./dev built before tests are as new as their sources.
    (source / JARS).mkdir(exist_ok=True)
    for each in (ROOT / JARS).glob("*.jar"):
        if build_connector.is_current(each):
            shutil.copy2(each, source / JARS)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    done = subprocess.run(
        [*command, "--wheel-dir", str(folder), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed."""
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True)
    return target


@pytest.fixture(scope="module")
def jre_only(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine without a compiler: all commands but those of a JDK."""
    folder = tmp_path_factory.mktemp("bin")
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / command.name
            if command.name not in NOT_IN_A_JRE and not link.is_symlink():
                link.symlink_to(command)
    environment = {**os.environ, "PATH": str(folder), "PYSPARK_PYTHON": sys.executable}
    environment.pop("JAVA_HOME", None)
    assert shutil.which("javac", path=str(folder)) is None
    return environment


def test_it_carries_all_that_is_needed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert f"lockgate/{JARS}/{connector_jars.jar().name}" in names
    assert "lockgate/framework/spark/spark_versions.toml" in names
    assert "lockgate/py.typed" in names
    for package in ("framework", "lookup", "procedures", "pushdown"):
        assert f"lockgate/{package}/__init__.py" in names
    modules = {
        str(path.relative_to(ROOT))
        for package in ("framework", "lookup", "procedures", "pushdown")
        for path in (ROOT / package).rglob("*.py")
        if (path.parent / "__init__.py").exists()
    }
    assert {f"lockgate/{module}" for module in modules} <= set(names)


def test_it_carries_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lockgate"}
    assert not [name for name in names if name.endswith(".java") or "__pycache__" in name]


def test_its_entry_points(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    text = archive.read(name).decode()
    assert "lockgate = lockgate.cli.main:main" in text
    assert "procedures = lockgate.procedures.plugin" in text
    assert "lookup = lockgate.lookup.plugin" in text


def test_its_page_has_whole_links_and_it_lists_what_it_is_made_of(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = ("/METADATA", "/sboms/lockgate.cdx.json")
    metadata, bill = (
        archive.read(name).decode() for end in names for name in archive.namelist() if name.endswith(end)
    )
    assert "/blob/main/docs/spark.md#a-session)" in metadata
    assert re.findall(r"\]\((?!https?://|#)", metadata) == []
    components = {each["name"]: each for each in json.loads(bill)["components"]}
    assert components["pyarrow"]["scope"] == "required"
    assert components["pyspark"]["scope"] == "optional"
    jar = connector_jars.jar()
    (hashed,) = components[jar.name.removesuffix(f"-{VERSION}.jar")]["hashes"]
    assert hashed["content"] == hashlib.sha256(jar.read_bytes()).hexdigest()


@pytest.mark.cluster
def test_the_front_page_s_snippet_runs_with_a_jre_only(
    installed: Path, jre_only: dict[str, str], tmp_path: Path
) -> None:
    environment = {**jre_only, "PYTHONPATH": str(installed)}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    assert run("-c", "import lockgate; print(lockgate.__file__)").startswith(str(installed))
    run("-m", "lockgate.cli", "keys", "create", "keys.json", "pii")
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    output = run("-c", snippet)
    assert re.search(r"\|\s*2\|\s*Grace\|\s*789\|", output)
    assert "files_rewritten" in output
    assert "remaining" in output
    assert "[{'id': 2, 'ssn': None}]" in output
