"""The keys that the tasks of a governed query get: those of values that its user sees, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from governed_world import World
from pyspark.errors.exceptions.captured import SparkRuntimeException
from ranger_world import allow, deny, mask, row_filter

from lockgate.framework.plugins import Event, KeyUnwrapped, hookimpl, plugins

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]

ROWS = "(1, 'Ann-1', 100), (2, 'Bob-2', 200)"


@pytest.fixture(scope="module")
def sealed(lake: Lake, shared_table: Named) -> str:
    """A table with a name under `pii`, stored redacted, and a salary under `other`, stored as null."""
    name = shared_table("sealed")
    options = "'orc.encrypt'='pii:name;other:salary', 'orc.mask'='redact:name'"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, salary BIGINT) TBLPROPERTIES ({options})")
    return name


@pytest.fixture
def granted() -> Iterator[set[tuple[str, str]]]:
    """The users and the keys that their plans were given."""
    given: set[tuple[str, str]] = set()

    @hookimpl
    def lockgate_event(event: Event) -> None:
        if isinstance(event, KeyUnwrapped) and event.granted:
            given.add((event.user, event.key))

    plugins().register(SimpleNamespace(lockgate_event=lockgate_event), "watcher-of-keys")
    yield given
    plugins().unregister("watcher-of-keys")


def keys_of(given: set[tuple[str, str]]) -> list[tuple[str, str]]:
    assert plugins().events.flush()
    found = sorted(given)
    given.clear()
    return found


def test_tasks_get_the_keys_of_values_that_their_user_sees(
    world: World, lake: Lake, sealed: str, granted: set[tuple[str, str]]
) -> None:
    def read(user: str, columns: str = "*") -> tuple[list[tuple[object, ...]], list[tuple[str, str]]]:
        # Local keys are kept for a while: files of an append are new.
        lake.sql(f"INSERT OVERWRITE {sealed} VALUES {ROWS}")
        keys_of(granted)
        return world.sql(f"SELECT {columns} FROM {sealed}", user), keys_of(granted)

    everybody = allow(f"{sealed}.*", users=["ann", "bob"])
    redacted = [(1, "Xxx.9", 100), (2, "Xxx.9", 200)]
    clear = [(1, "Ann-1", 100), (2, "Bob-2", 200)]

    world.put(everybody)
    assert read("ann") == (clear, [("ann", "other"), ("ann", "pii")])

    world.put(everybody, mask(f"{sealed}.name", "MASK", users=["ann"]))
    assert read("ann") == (redacted, [("ann", "other")]), "the file stores this mask"
    assert read("bob") == (clear, [("bob", "other"), ("bob", "pii")]), "another user in the same JVM"
    assert read("ann") == (redacted, [("ann", "other")]), "and that user's keys are not used for others"

    world.put(everybody, mask(f"{sealed}.name", "MASK_HASH", users=["ann"]))
    rows, keys = read("ann", "name")
    assert len(str(rows[0][0])) == 64
    assert ("ann", "pii") in keys, "the file stores another mask"

    world.put(
        everybody, mask(f"{sealed}.salary", "MASK_NULL", users=["ann"]), deny(f"{sealed}.name", users=["ann"])
    )
    assert read("ann", "id, salary") == ([(1, None), (2, None)], []), "neither denied nor masked values"

    hidden = row_filter(sealed, "name = 'Ann-1'", users=["ann"])
    world.put(everybody, mask(f"{sealed}.name", "MASK", users=["ann"]), hidden)
    assert read("ann") == ([redacted[0]], [("ann", "other"), ("ann", "pii")]), "the filter needs the values"


def test_files_from_before_the_encryption_are_masked_all_the_same(
    world: World, lake: Lake, shared_table: Named
) -> None:
    name = shared_table("opened")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'Ann-1')")
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.encrypt'='pii:name', 'orc.mask'='redact:name')")
    lake.sql(f"INSERT INTO {name} VALUES (2, 'Bob-2')")
    world.put(allow(f"{name}.*", users=["ann"]), mask(f"{name}.name", "MASK", users=["ann"]))
    assert world.sql(f"SELECT * FROM {name}") == [(1, "Xxx.9"), (2, "Xxx.9")]


def test_a_damaged_file_is_named_under_policies_too(world: World, lake: Lake, shared_table: Named) -> None:
    name = shared_table("damaged")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'Ann-1')")
    table = lake.catalog.load_table(name.removeprefix("lake."))
    for path in Path(table.location).rglob("*.orc"):
        path.write_bytes(b"ORC" + bytes(path.stat().st_size - 3))
    world.put(allow(f"{name}.*", users=["ann"]), mask(f"{name}.name", "MASK", users=["ann"]))
    with pytest.raises(SparkRuntimeException, match=r"CorruptFileError: cannot read ORC file .*\.orc"):
        world.sql(f"SELECT * FROM {name}")
