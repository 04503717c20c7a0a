"""The documentation's examples of hooks about access and events do what the page says."""

from __future__ import annotations

import logging
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import Caller, Principal
from lockgate.framework.plugins import acting_as, plugins
from lockgate.framework.store import Catalog, Schema, Table

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"


@pytest.fixture
def example() -> Iterator[Callable[[str], None]]:
    """A function that registers the example of a hook."""
    names = []

    def add(hook: str) -> None:
        section = PAGE.read_text().split(f"### {hook}(")[1]
        code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
        assert code
        module = types.ModuleType(hook)
        exec(compile(code[1], str(PAGE), "exec"), vars(module))
        plugins().register(module, f"example of {hook}")
        names.append(f"example of {hook}")

    yield add
    for name in names:
        plugins().unregister(name)


@pytest.fixture
def people(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("hr")
    schema = Schema.from_arrow(pa.schema([("name", pa.string()), ("salary", pa.int64())]))
    table = catalog.create_table("hr.people", schema)
    table.append(pa.table({"name": ["Ada"], "salary": [7]}))
    return table


def test_the_example_gives_a_user_groups(example: Callable[[str], None]) -> None:
    example("lockgate_principal")
    assert plugins().principal(Caller("ada")) == Principal("ada", groups=frozenset({"hr"}))
    assert plugins().principal(Caller("bob")) == Principal("bob")


def test_the_example_masks_and_denies(example: Callable[[str], None], people: Table) -> None:
    example("lockgate_authorize")
    with acting_as(Principal("ada", groups=frozenset({"hr"}))):
        assert people.read().to_pylist() == [{"name": "Ada", "salary": 7}]
        people.append(pa.table({"name": ["Bob"], "salary": [8]}))
    with acting_as(Principal("bob")):
        assert people.read()["salary"].to_pylist() == [None, None]
        with pytest.raises(AccessDeniedError, match="membership of group hr"):
            people.append(pa.table({"name": ["Eve"], "salary": [9]}))


def test_the_example_sees_commits(
    example: Callable[[str], None], people: Table, caplog: pytest.LogCaptureFixture
) -> None:
    assert plugins().events.flush()
    example("lockgate_event")
    with caplog.at_level(logging.INFO, "warehouse"):
        people.append(pa.table({"name": ["Bob"], "salary": [8]}))
        assert plugins().events.flush()
    assert caplog.messages == [f"{people.location} is at snapshot 2"]
