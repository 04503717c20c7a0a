"""Checks of the data files of a table that Spark wrote."""

from __future__ import annotations

from pathlib import Path

from lockgate import Lake
from lockgate.framework.orc import verify_file


def data_files(lake: Lake, name: str) -> list[Path]:
    """Return the data files of `lake.<database>.<table>` on disk."""
    location = Path(lake.catalog.load_table(name.removeprefix("lake.")).location)
    return sorted(location.rglob("data-*.orc"))


def assert_verified(lake: Lake, name: str) -> list[Path]:
    """Check every file of a table with Python's `verify_file`; return the files."""
    keys = lake.catalog.load_table(name.removeprefix("lake.")).keys
    files = data_files(lake, name)
    assert files
    for path in files:
        report = verify_file(str(path), keys=keys)
        assert (report.status, report.damage, report.checked) == ("verified", (), path.stat().st_size), path
    return files
