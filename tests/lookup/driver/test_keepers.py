"""Who keeps the caches of a Spark session: its executors, its driver, and when there is a warning."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.errors import LookupOwnerWarning
from lockgate.lookup.driver.cluster import PLUGIN_CLASS, executors_keep, warn_of_detached_cache_server


def session(master: str, plugins: str, application: str = "app") -> Any:
    conf = {"spark.plugins": plugins} if plugins else {}
    context = SimpleNamespace(master=master, applicationId=application, getConf=lambda: conf)
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize(
    ("master", "plugins", "expected"),
    [
        ("local", PLUGIN_CLASS, False),
        ("local[*]", PLUGIN_CLASS, False),
        ("local[2,4]", "", False),
        ("local-cluster[2,1,1024]", PLUGIN_CLASS, True),
        ("yarn", f"org.other.Plugin,{PLUGIN_CLASS}", True),
        ("k8s://https://host", "", False),
        ("spark://host:7077", "org.other.Plugin", False),
    ],
)
def test_who_keeps_the_caches(master: str, plugins: str, expected: bool) -> None:
    assert executors_keep(session(master, plugins)) is expected


def test_the_warning_is_for_clusters_without_the_plugin_and_comes_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_detached_cache_server(session("local[2]", ""))
        warn_of_detached_cache_server(session("yarn", PLUGIN_CLASS))
    told = f"spark.plugins={PLUGIN_CLASS}"
    with pytest.warns(LookupOwnerWarning, match=told):
        warn_of_detached_cache_server(session("yarn", "", "one"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_detached_cache_server(session("yarn", "", "one"))
    with pytest.warns(LookupOwnerWarning, match=told):
        warn_of_detached_cache_server(session("yarn", "", "two"))
