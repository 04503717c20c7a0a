"""What pyproject.toml cannot say: the jars are checked, the page's links are made whole, and the wheel lists
what it is made of.
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
# A source archive has no links.
JAVA = HERE / "src" / "lockgate" / "framework" / "spark" / "java"
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


class BuildWithConnectors(build_py):
    """Take the jars that were built before: no Spark and no JDK is needed to make a wheel."""

    def run(self) -> None:
        # An editable installation reads the jar where ./dev builds it.
        if not self.editable_mode:
            builder = runpy.run_path(str(JAVA / "build_connector.py"))
            missing, faults = builder["missing_jars"](), builder["jar_faults"]()
            if len(missing) == len(builder["minors"]()):
                faults = [f"{builder['JARS']} holds no connector jar"]
            if faults:
                raise SystemExit(
                    f"{'; '.join(faults)}. Build the jars: ./dev jars, or {JAVA / 'build_connector.py'} "
                    "FOLDER for the folder of one Spark's jars"
                )
            if missing:
                self.warn(f"this wheel has no connector for Spark {', '.join(missing)}")
        super().run()


class WheelWithBill(bdist_wheel):
    """Add a bill of materials in CycloneDX's format, where PEP 770 wants it."""

    def write_wheelfile(self, wheelfile_base: str, *arguments: str, **options: str) -> None:
        super().write_wheelfile(wheelfile_base, *arguments, **options)
        path = Path(wheelfile_base) / "sboms" / "lockgate.cdx.json"
        path.parent.mkdir()
        path.write_text(json.dumps(bill_of_materials(self.distribution.get_version()), indent=1) + "\n")


def bill_of_materials(version: str) -> dict[str, object]:
    """Return what the wheel carries, and what it needs from others."""
    needed = [("required", each) for each in PROJECT["dependencies"]]
    needed += [("optional", each) for extra in PROJECT["optional-dependencies"].values() for each in extra]
    components: list[dict[str, object]] = [
        {
            "type": "library",
            "name": name,
            "purl": f"pkg:pypi/{name.lower()}",
            "scope": scope,
            "properties": [{"name": "lockgate:requirement", "value": requirement}],
        }
        for scope, requirement in sorted(needed)
        for name in re.findall(r"^[\w.-]+", requirement)
    ]
    for jar in sorted((JAVA.parent / "jars").glob("*.jar")):
        artifact = jar.name.removesuffix(f"-{version}.jar")
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        components.append(
            {
                "type": "library",
                "group": "io.lockgate",
                "name": artifact,
                "version": version,
                "purl": f"pkg:maven/io.lockgate/{artifact}@{version}",
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        )
    own = {"type": "library", "name": "lockgate", "version": version, "purl": f"pkg:pypi/lockgate@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": PROJECT["license"]}}]}},
        "components": components,
    }


def page() -> str:
    """Return README.md with whole links, for the package index shows it away from the repository."""
    source = PROJECT["urls"]["Source"]
    text = (HERE / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!https?://|#)([^)]+)\)", rf"]({source}/blob/main/\1)", text)


setup(
    cmdclass={"build_py": BuildWithConnectors, "bdist_wheel": WheelWithBill},
    long_description=page(),
    long_description_content_type="text/markdown",
)
