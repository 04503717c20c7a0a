"""Arguments of public doors: what is refused, by which words, and what is taken."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np
import pytest

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.io import FileSystem, LocalFileSystem, named_errors
from lockgate.framework.store import Catalog, Table

if TYPE_CHECKING:
    from fractions import Fraction as Part

    import nothing_of_that_name

T = TypeVar("T")
SECRET = "hush-hush"
Names: TypeAlias = "str | Sequence[str]"


@checked_arguments
def taking(
    text: str = "",
    number: int = 0,
    ratio: float = 0.0,
    truth: bool = False,
    names: Iterable[str] | None = None,
    parts: tuple[int, ...] = (),
    options: Mapping[str, str] | None = None,
    mode: Literal["a", "b"] = "a",
    alias: Names = "",
    part: Part | None = None,
    unknown: nothing_of_that_name.Thing | None = None,
    files: FileSystem | None = None,
    function: Callable[[], int] | None = None,
    noted: Annotated[int, "BIGINT"] = 0,
    anything: Any = None,
    of_any_kind: T | None = None,
) -> dict[str, object]:
    return dict(locals())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": SECRET.encode()}, "text takes str, not bytes"),
        ({"number": True}, "number takes int, not bool"),
        ({"number": SECRET}, "number takes int, not str"),
        ({"number": 1.0}, "number takes int, not float"),
        ({"ratio": SECRET}, "ratio takes float, not str"),
        ({"truth": 1}, "truth takes bool, not int"),
        ({"truth": None}, "truth takes bool, not NoneType"),
        ({"names": ["id", 7]}, r"names takes Iterable\[str\] | None, not list of int, str"),
        ({"names": 7}, r"names takes Iterable\[str\] | None, not int"),
        ({"names": b"ab"}, r"names takes Iterable\[str\] | None, not bytes"),
        ({"parts": "12"}, r"parts takes tuple\[int, \.\.\.\], not str"),
        ({"options": {SECRET: b""}}, r"options takes Mapping\[str, str\] | None, not dict of bytes, str"),
        ({"options": {7: SECRET}}, r"options takes Mapping\[str, str\] | None, not dict of int, str"),
        ({"options": [SECRET]}, r"options takes Mapping\[str, str\] | None, not list of str"),
        ({"mode": 7}, r"mode takes Literal\['a', 'b'\], not int"),
        ({"alias": 7}, r"alias takes str \| Sequence\[str\], not int"),
        ({"part": 1}, r"part takes Part \| None, not int"),
        ({"files": SECRET}, r"files takes FileSystem \| None, not str"),
        ({"function": SECRET}, r"function takes Callable"),
        ({"noted": SECRET}, "noted takes Annotated"),
    ],
)
def test_a_misfit_is_named_by_its_type_alone(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=f"^taking: {words}") as raised:
        taking(**given)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "given",
    [
        {"text": "", "number": np.int64(7), "ratio": 1, "truth": np.bool_(True)},
        {"ratio": np.float32(1)},
        {"names": {"a"}, "parts": [1], "options": {}},
        {"names": (name for name in "ab")},
        {"names": "ab", "alias": "ab"},  # check_names says more of a text where names are due
        {"names": {"a": 1}.keys(), "options": {"a": "b", "bucket": 1, "c": True}},
        {"part": None, "unknown": object(), "files": LocalFileSystem(), "function": len},
        {"anything": object(), "of_any_kind": object(), "noted": 7, "mode": "b"},
    ],
)
def test_what_fits_is_taken(given: dict[str, Any]) -> None:
    assert {name: taking(**given)[name] for name in given} == given


def test_a_call_that_does_not_fit_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        taking(nope=1)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        Door("a", "b")  # type: ignore[call-arg]  # wrong on purpose


@checked_arguments
class Door:
    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def of(cls, name: str) -> Door:
        return cls(name)

    @staticmethod
    def twice(number: int) -> int:
        return number * 2

    @named_errors
    def shout(self, times: int = 1) -> str:
        return self.name * times

    def _inner(self, number: int) -> int:
        return number


@checked_arguments
@dataclass(frozen=True)
class Request:
    name: str
    limit: int | None = None


def test_classes_and_their_methods() -> None:
    door = Door.of("a")
    assert (door.shout(2), Door.twice(3), door._inner("x")) == ("aa", 6, "x")  # type: ignore[arg-type]  # on purpose
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: Door(7), "Door: name takes str, not int"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Door.of(7), "Door.of: name takes str"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Door.twice("x"), "Door.twice: number takes int"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: door.shout("x"), "Door.shout: times takes int"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Request("a", True), "Request: limit takes int"),
    ]
    for call, words in calls:
        with pytest.raises(InputError, match=words):
            call()
    assert pickle.loads(pickle.dumps(Request("a", 1))) == Request("a", 1)
    assert pickle.loads(pickle.dumps(taking)) is taking


def test_doors_say_what_they_take(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with pytest.raises(
        InputError, match=r"^Catalog\.create_table: schema takes Schema, not dict of "
    ) as raised:
        catalog.create_table("db.t", {"password": 7, SECRET: 8})  # type: ignore[arg-type]  # wrong on purpose
    assert SECRET not in str(raised.value)
    assert Table.read.__doc__, "documentation and signatures are those of the methods"


def test_importing_a_door_reads_no_annotation() -> None:
    script = (
        "import lockgate.checked_arguments as checked, lockgate; lockgate.Catalog; "
        "print(checked._imported_for_types.cache_info().misses)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
