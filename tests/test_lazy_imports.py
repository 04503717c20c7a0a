"""Importing the library costs little: heavy packages load when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from house import ROOT, sources

HEAVY = ("pyspark", "py4j", "rocksdict", "fastavro", "pandas", "duckdb")


def loaded_by(statement: str) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after `statement`."""
    code = f"import sys; {statement}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) & {*HEAVY, "pyarrow", "cryptography", "lockgate"}


def test_the_package_itself_loads_nothing() -> None:
    assert loaded_by("import lockgate") == {"lockgate"}


@pytest.mark.parametrize(
    "module",
    [
        "lockgate.framework.orc",
        "lockgate.framework.keys",
        "lockgate.framework.plugins",
        "lockgate.framework.spark",
        "lockgate.framework.store",
        "lockgate.procedures",
        "lockgate.procedures.plugin",
        "lockgate.lookup.plugin",
        "lockgate.pushdown",
        "lockgate.cli.main",
    ],
)
def test_no_part_loads_spark_or_rocksdb(module: str) -> None:
    assert not loaded_by(f"import {module}") & {"pyspark", "py4j", "rocksdict", "pandas", "duckdb"}


def test_plugins_load_without_spark_or_rocksdb() -> None:
    gather = "plugins().procedures(); plugins().bridge_operations()"
    assert not loaded_by(f"from lockgate.framework.plugins import plugins; {gather}") & {
        "pyspark",
        "py4j",
        "rocksdict",
    }


def test_public_names_of_the_package() -> None:
    import lockgate

    assert lockgate.__all__
    for name in lockgate.__all__:
        assert getattr(lockgate, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        lockgate.no_such_name  # noqa: B018 - looking it up raises


def lazy_modules() -> list[str]:
    """Return the modules whose names load at first use."""
    paths = [path for path in sources() if "lazy_attributes(" in path.read_text()]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return sorted(
        "lockgate." + name.removeprefix("src.lockgate").removesuffix("__init__").strip(".") for name in names
    )


@pytest.mark.parametrize("module", [each.strip(".") for each in lazy_modules() if "lazy_names" not in each])
def test_each_lazy_name_is_where_its_module_says(module: str) -> None:
    door = importlib.import_module(module)
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        door.no_such_name  # noqa: B018 - looking it up raises
