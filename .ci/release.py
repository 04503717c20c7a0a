"""A release as it will be published, without its publication: everything lands in `dist/`.

Jars of every Spark, a source archive, a wheel made of it without a JDK and a pyspark, a Maven bundle for each
jar, checksums; then an installation from a local index. Uses what `./dev` has installed, and no network.

  release.py --rehearse   with placeholders where a person must still decide (RELEASING.md lists them)
  release.py              refuses placeholders and versions that are not final
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BUILDER = runpy.run_path(str(ROOT / "framework" / "spark" / "java" / "build_connector.py"))
PLACEHOLDER = "OWNER"
JAVADOC = "The connector has no Java API for programs: it is configured by confs, see docs/spark.md.\n"
BACKEND = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"


def say(text: str) -> None:
    """Tell how far the release is."""
    print(f"release: {text}", file=sys.stderr, flush=True)


def stop(text: str) -> None:
    """End with what is wrong."""
    sys.exit(f"release: {text}")


def checked_jars() -> list[Path]:
    """Return the jars of all Sparks, made of these sources."""
    missing, faults = BUILDER["missing_jars"](), BUILDER["jar_faults"]()
    if missing or faults:
        stop("; ".join([*(f"no jar for Spark {each}" for each in missing), *faults]) + ". Run ./dev jars")
    return [BUILDER["jar_of"](minor) for minor in BUILDER["minors"]()]


def check_decisions(project: dict[str, Any], version: str) -> None:
    """Stop at placeholders and versions that must not be published."""
    texts = [*project["urls"].values(), *(str(each) for each in project["maintainers"])]
    open_ones = [text for text in texts if PLACEHOLDER in text]
    if open_ones:
        stop(f"pyproject.toml still has placeholders: {', '.join(open_ones)}; RELEASING.md says who decides")
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        stop(f"framework/version.py says {version}: publish a final version, a beta or a candidate")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607
    if changed.stdout:
        stop("there are changes that are not committed")


def built(command: str, folder: Path, path: str | None = None) -> Path:
    """Build a distribution by setuptools in a folder; with `path`, that alone is searched for programs."""
    before = set(DIST.iterdir())
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "PYTHONPATH")}
    if path is not None:
        environment["PATH"] = path
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", BACKEND.format(command), str(DIST)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        stop(f"the {command} was not built:\n{done.stderr[-3000:]}")
    (made,) = set(DIST.iterdir()) - before
    return made


def source_archive_and_wheel(work: Path) -> Path:
    """Build the source archive, and a wheel of it where there is neither a JDK nor a pyspark."""
    archive = built("sdist", ROOT)
    with tarfile.open(archive) as opened:
        opened.extractall(work, filter="data")
    empty = work / "bin"
    empty.mkdir()
    (source,) = work.glob("lockgate-*")
    if shutil.which("javac", path=str(empty)):
        stop("there is a JDK where there must be none")
    return built("wheel", source, path=str(empty))


def check_wheel(wheel: Path, jars: list[Path]) -> None:
    """Stop unless the wheel carries the jars and its bill of materials, and its page has no broken link."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        carried = {name.rsplit("/", 1)[1]: archive.read(name) for name in names if name.endswith(".jar")}
        (page,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(page)
    if carried != {jar.name: jar.read_bytes() for jar in jars}:
        stop(f"the wheel carries {sorted(carried)}, not the jars of framework/spark/jars")
    if not any(name.endswith(".dist-info/sboms/lockgate.cdx.json") for name in names):
        stop("the wheel has no bill of materials")
    if not wheel.name.endswith("-py3-none-any.whl"):
        stop(f"{wheel.name} is not for every platform")
    parsed = Metadata.from_email(metadata, validate=True)
    relative = re.findall(r"\]\((?!https?://|#)[^)]*\)", parsed.description or "")
    if relative or parsed.description_content_type != "text/markdown":
        stop(f"the page of the package index would have broken links: {relative[:5]}")
    archives = map(str, DIST.glob("lockgate-*.tar.gz"))
    twine = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), *archives]
    if subprocess.run(twine, check=False).returncode:  # noqa: S603
        stop("twine refuses the wheel or the source archive")


def maven_bundle(jar: Path, out: Path) -> Path:
    """Write what Maven Central's portal takes in one archive: jar, sources, Javadoc, POM, checksums."""
    with zipfile.ZipFile(jar) as archive:
        (pom,) = (archive.read(name) for name in archive.namelist() if name.endswith("/pom.xml"))
    text = pom.decode()
    group, artifact, version = (
        re.findall(rf"<{tag}>(.+?)</{tag}>", text)[0] for tag in ("groupId", "artifactId", "version")
    )
    minor = artifact.removeprefix("lockgate-spark-").partition("_")[0]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        compiled = BUILDER["compiled_sources"](minor, work).items()
        parts = {"-sources.jar": {each: path.read_bytes() for each, path in compiled}}
        parts["-javadoc.jar"] = {"README.md": JAVADOC.encode()}
        files = {".jar": jar.read_bytes(), ".pom": pom}
        for suffix, entries in parts.items():
            BUILDER["pack"](work / suffix, entries)
            files[suffix] = (work / suffix).read_bytes()
    stem = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
    bundle = {f"{stem}{suffix}": content for suffix, content in files.items()}
    for each, content in list(bundle.items()):
        for kind in ("md5", "sha1", "sha256"):
            bundle[f"{each}.{kind}"] = hashlib.new(kind, content, usedforsecurity=False).hexdigest().encode()
    path = out / f"{artifact}-{version}-maven.zip"
    BUILDER["pack"](path, bundle)
    return path


def install(work: Path, jars: list[Path]) -> None:
    """Install the wheel from an index of this machine, and ask it for the jar of every Spark."""
    index = work / "simple" / "lockgate"
    index.mkdir(parents=True)
    links = []
    for path in [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]:
        shutil.copy(path, index)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        links.append(f'<a href="{path.name}#sha256={digest}">{path.name}</a><br>')
    (index / "index.html").write_text("\n".join(links))
    subprocess.run([sys.executable, "-m", "venv", str(work / "venv")], check=True)  # noqa: S603
    python = str(work / "venv" / "bin" / "python")
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", "lockgate"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    index_url = (work / "simple").as_uri()
    subprocess.run([python, *pip, "--index-url", index_url, "lockgate"], env=environment, check=True)  # noqa: S603
    command = str(work / "venv" / "bin" / "lockgate")
    # What lockgate needs from others is where `./dev` has installed it.
    environment["PYTHONPATH"] = sysconfig.get_path("purelib")
    for minor, jar in zip(BUILDER["minors"](), jars, strict=True):
        asked = [command, "jar", "--spark", minor]
        told = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        if Path(told.stdout.strip()).read_bytes() != jar.read_bytes():
            stop(f"{' '.join(asked)} printed {told.stdout}")


def main(arguments: list[str]) -> None:
    """Make everything that is published."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    jars = checked_jars()
    if "--rehearse" not in arguments:
        check_decisions(project, BUILDER["lockgate_versions"]()[0])
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        say("source archive, and a wheel of it")
        wheel = source_archive_and_wheel(work)
        check_wheel(wheel, jars)
        say("Maven bundles")
        for jar in jars:
            maven_bundle(jar, DIST)
        say("installation from a local index")
        install(work, jars)
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("\n".join([*sums, ""]))
    print(*(f"{path.stat().st_size:>12,}  {path.name}" for path in sorted(DIST.iterdir())), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
