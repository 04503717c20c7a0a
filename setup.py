"""Adds the connector jar to the wheel; everything else is in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class BuildWithConnector(build_py):
    """Build the connector before the packages are copied, so that the jar is copied with them."""

    def run(self) -> None:
        # An editable installation reads the jar where ./dev builds it.
        if not self.editable_mode:
            script = runpy.run_path(str(HERE / "framework" / "spark" / "java" / "build_connector.py"))
            script["build"]()
        super().run()


setup(cmdclass={"build_py": BuildWithConnector})
