"""Checks the connector's jars that go into the wheel; everything else is in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

JAVA = Path(__file__).parent / "framework" / "spark" / "java"


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


setup(cmdclass={"build_py": BuildWithConnectors})
