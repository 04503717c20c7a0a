"""Finding procedures and binding arguments, without a table."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import tempfile
import types
from collections.abc import Iterator
from typing import Any, cast

import pytest

from lockgate.errors import InputError, PluginError, ProcedureError, ProcedureNotFoundError, StorageFullError
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.procedures import Parameter, Procedure, ProcedureContext, call, find, names, signature
from lockgate.procedures.plugin import call_procedure, list_procedures, load_procedure

with pytest.warns(DeprecationWarning, match="Echo is .* of the old form"):

    class Echo(Procedure):
        name = "echo_back"
        description = "Return the arguments."
        parameters = (
            Parameter("text", "STRING", doc="what to return"),
            Parameter("how_often", "INT", 1, "how often"),
            Parameter("dry_run", "BOOLEAN", False, "return nothing"),
        )
        result = (("text", "STRING"), ("how_often", "INT"))

        def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
            if arguments["text"] == "short":
                return [("short",)]
            return [] if arguments["dry_run"] else [(arguments["text"], arguments["how_often"])]


class Wrong(Echo):
    name = "wrong"
    parameters = (Parameter("text", "STRNG"),)


class Full(Echo):
    """A disk is full, in the procedure or while its rows are read."""

    name = "full"

    def call(self, context: ProcedureContext, **arguments: Any) -> Any:
        if arguments["text"] == "later":
            return self.rows()
        return next(self.rows())

    @staticmethod
    def rows() -> Iterator[tuple[Any, ...]]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/warehouse/file")
        yield


# Calls leave their records there.
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
CONTEXT = ProcedureContext(Catalog(FOLDER))


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    plugin = types.ModuleType("echo")
    plugin.lockgate_procedures = hookimpl(lambda: [Echo(), Wrong(), Full()])  # type: ignore[attr-defined]  # a module made here
    plugins().register(plugin, "echo")
    yield
    plugins().unregister("echo")


def test_names_in_snake_case_and_camel_case() -> None:
    assert "echo_back" in names()
    assert find("echoBack") is find("echo_back") is find("ECHO_BACK")
    with pytest.raises(ProcedureNotFoundError, match="did you mean 'echo_back'"):
        find("echoo_back")


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        (("a", 2), {}),
        (("a",), {"how_often": 2}),
        ((), {"text": "a", "howOften": 2, "how_often": None}),
        (("a", 2, None), {"dryRun": None}),
    ],
)
def test_arguments_by_position_name_and_alias(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    result = call(CONTEXT, "echo_back", *positional, **named)
    assert result.to_dicts() == [{"text": "a", "how_often": 2}]
    assert result["how_often"] == 2
    assert str(result).split() == ["text", "how_often", "a", "2"]


def test_arguments_left_out_have_defaults() -> None:
    assert list(call(CONTEXT, "echo_back", "a")) == [("a", 1)]
    assert len(call(CONTEXT, "echo_back", "a", dry_run=True)) == 0


@pytest.mark.parametrize(
    ("positional", "named", "complaint"),
    [
        ((), {}, "needs the argument 'text'"),
        (("a",), {"text": "b"}, "'text' is given twice"),
        (("a",), {"how_oft": 1}, "no parameter 'how_oft'; did you mean 'how_often'"),
        (("a", "b"), {}, "'how_often': 'b' is not an INT"),
        (("a", 1, True, 4), {}, "takes 3 arguments, 4 were given"),
    ],
)
def test_bad_arguments(positional: tuple[Any, ...], named: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        call(CONTEXT, "echo_back", *positional, **named)


def test_rows_that_do_not_fit_the_result() -> None:
    with pytest.raises(ProcedureError, match="1 values for 2 columns"):
        call(CONTEXT, "echo_back", "short")


def test_wrong_declaration() -> None:
    with pytest.raises(PluginError, match=r"'wrong' is declared wrongly.*STRNG"):
        find("wrong")


def test_a_signature_shows_types_and_defaults() -> None:
    assert signature(find("echo_back")) == (
        "echo_back(text STRING, how_often INT DEFAULT 1, dry_run BOOLEAN DEFAULT false)"
    )


@pytest.mark.parametrize("name", ["db.t", "lake.db.t", "lake.`db`.t"])
def test_table_names(name: str) -> None:
    assert CONTEXT.identifier(name) == "db.t"


@pytest.mark.parametrize("name", ["t", "other.db.t", "db.", "a.b.c.d"])
def test_bad_table_names(name: str) -> None:
    with pytest.raises(InputError, match="does not name a table"):
        CONTEXT.identifier(name)


def test_spark_is_asked_for_only_where_it_is_needed() -> None:
    with pytest.raises(ProcedureError, match="rewriting needs Spark"):
        CONTEXT.require_spark("rewriting")


# --- the operations of the bridge ---


class Bridge:
    """The context of a request, with a catalog that no test here opens."""

    spark = None
    request: dict[str, Any] = {}  # noqa: RUF012 - nothing changes it

    def catalog(self, name: str) -> Any:
        return CONTEXT.catalog


def request(**more: Any) -> dict[str, Any]:
    return {"catalog": "lake", "namespace": ["sys"], "name": "echo_back", **more}


def test_operation_load() -> None:
    loaded = cast("dict[str, Any]", load_procedure(Bridge(), request()))
    assert [each["name"] for each in loaded["parameters"]] == [
        "text",
        "how_often",
        "dry_run",
        "howOften",
        "dryRun",
    ]
    assert [each["default"] for each in loaded["parameters"]] == [None, "NULL", "NULL", "NULL", "NULL"]
    assert loaded["result"] == [{"name": "text", "type": "STRING"}, {"name": "how_often", "type": "INT"}]


def test_operation_call() -> None:
    arguments = {"text": "a", "how_often": None, "howOften": 3, "dry_run": None, "dryRun": None}
    assert call_procedure(Bridge(), request(arguments=arguments)) == {"rows": [["a", 3]]}


def no_procedures() -> list[Any]:
    return []


def test_operation_list_and_other_namespaces() -> None:
    plugins().unregister("echo")
    listed = cast("dict[str, Any]", list_procedures(Bridge(), {"namespace": []}))
    assert [each["namespace"] for each in listed["procedures"]] == [["sys"]] * len(names())
    assert list_procedures(Bridge(), {"namespace": ["db"]}) == {"procedures": []}
    plugins().register(types.SimpleNamespace(lockgate_procedures=hookimpl(no_procedures)), "echo")
    with pytest.raises(ProcedureNotFoundError, match=r"called as sys\.compact"):
        load_procedure(Bridge(), request(namespace=["db"], name="compact"))


@pytest.mark.parametrize("text", ["now", "later"])
def test_a_full_disk_is_named(text: str) -> None:
    with pytest.raises(StorageFullError, match="/warehouse/file"):
        call(CONTEXT, "full", text)
