"""What `configure` adds to and never takes away: the jars, plugins and extensions of the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lockgate
from lockgate.framework.spark.session import session
from lockgate.framework.spark.session.start_confs import conf_at_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No JVM runs, and spark-defaults.conf names things in each form that Java's properties have."""
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.jars=no.jar\n\n"
        "spark.jars   /a.jar,/b.jar\nspark.plugins = org.P\nspark.sql.extensions:org.E\n"
    )


def builder() -> SparkSession.Builder:
    from pyspark.sql import SparkSession

    return SparkSession.Builder()


@pytest.mark.usefixtures("defaults")
def test_defaults_stay() -> None:
    options = lockgate.configure(builder(), warehouse="/w")._options  # type: ignore[attr-defined]  # pyspark hides it from its types
    assert options["spark.jars"] == f"/a.jar,/b.jar,{session.jar()}"
    assert options["spark.plugins"] == f"org.P,{session.PLUGIN_CLASS}"
    assert options["spark.sql.extensions"] == f"org.E,{session.EXTENSIONS_CLASS}"
    assert conf_at_start("spark.other") is None


@pytest.mark.usefixtures("defaults")
def test_what_the_builder_says_goes_first_and_nothing_comes_twice() -> None:
    given = builder().config("spark.sql.extensions", f"org.D,{session.EXTENSIONS_CLASS}")
    options = lockgate.configure(given, warehouse="/w")._options  # type: ignore[attr-defined]  # pyspark hides it from its types
    assert options["spark.sql.extensions"] == f"org.D,{session.EXTENSIONS_CLASS}"


def test_no_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert conf_at_start("spark.sql.extensions") is None
