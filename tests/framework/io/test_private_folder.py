"""Private folders in Python and Java: both accept and refuse the same cases."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from java_tests import java_program, test_jar

from lockgate.errors import UnsafePathError
from lockgate.framework.io.private_folder import (
    check_own_folder,
    check_private_folder,
    check_private_socket,
    make_own_folder,
    make_private_folder,
    open_private_file,
)
from lockgate.framework.spark.bridge.connector_jars import jar

ROOT = Path(__file__).resolve().parents[3]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "fixtures" / "private_folders.json").read_text())
# As root, the code runs as a separate user, so that root, this user and another one differ.
IS_ROOT = os.geteuid() == 0
ME, OTHER = (12345, 65534) if IS_ROOT else (os.geteuid(), -1)
OWNERS = {"me": ME, "root": 0, "other": OTHER}


def for_this_user(case: dict[str, Any]) -> bool:
    return IS_ROOT or all(part["owner"] == "me" for part in case["tree"])


HERE_CASES = [
    pytest.param(
        case,
        id=case["name"].replace(" ", "-"),
        marks=[]
        if for_this_user(case)
        else pytest.mark.skip(reason="only root can make another user's folders"),
    )
    for case in CASES
]


@pytest.fixture
def base() -> Iterator[Path]:
    # Not tmp_path, which no other user can enter.
    folder = Path(tempfile.mkdtemp(prefix="lockgate-private-"))
    folder.chmod(0o755)
    if IS_ROOT:
        os.chown(folder, ME, ME)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def as_me() -> Iterator[None]:
    if not IS_ROOT:
        yield
        return
    os.seteuid(ME)
    try:
        yield
    finally:
        os.seteuid(0)


def build(base: Path, tree: list[dict[str, Any]]) -> None:
    for part in tree:
        path = base / part["path"]
        if part["kind"] == "link":
            path.symlink_to(part["to"])
        elif part["kind"] == "folder":
            path.mkdir()
        elif part["kind"] == "pipe":
            os.mkfifo(path)
        else:
            path.write_text("x")
        if IS_ROOT:
            os.chown(path, OWNERS[part["owner"]], OWNERS[part["owner"]], follow_symlinks=False)
        if part["kind"] != "link":
            path.chmod(int(part["mode"], 8))


def open_and_close(path: Path) -> Path:
    os.close(open_private_file(path))
    return path


DO: dict[str, Callable[[Path], Path]] = {
    "make": make_private_folder,
    "check": check_private_folder,
    "own": check_own_folder,
    "file": open_and_close,
}


def python_answer(verb: str, path: Path) -> str:
    if IS_ROOT:
        os.seteuid(ME)
    try:
        return str(DO[verb](path))
    except FileNotFoundError:
        return "error: missing"
    except NotADirectoryError:
        return "error: not a folder"
    except UnsafePathError as error:
        return f"error: {error}"
    finally:
        if IS_ROOT:
            os.seteuid(0)


def check_answer(answer: str, case: dict[str, Any], base: Path) -> None:
    if case["error"] is not None:
        assert re.match(f"error: .*{case['error']}", answer), answer
        return
    assert answer == str(base / case.get("real", case["path"]))
    if "mode_after" in case:
        assert stat.S_IMODE(Path(answer).stat().st_mode) == int(case["mode_after"], 8)


@pytest.mark.parametrize("case", HERE_CASES)
def test_python_answers_each_case_of_the_vectors(base: Path, case: dict[str, Any]) -> None:
    build(base, case["tree"])
    check_answer(python_answer(case["do"], base / case["path"]), case, base)


@pytest.fixture(scope="module")
def java() -> Iterator[list[str]]:
    # A copy, for a user without access to the folders of the jars.
    classes = Path(tempfile.mkdtemp(prefix="lockgate-classes-"))
    jars = [shutil.copy(each, classes) for each in (test_jar(), jar())]
    subprocess.run(["chmod", "-R", "go+rX", classes], check=True)
    yield [java_program(), "-Xmx64m", "-cp", ":".join(jars), "io.lockgate.spark.files.io.PrivateFolderCases"]
    shutil.rmtree(classes)


def test_cases_in_java(java: list[str], base: Path) -> None:
    cases = [case for case in CASES if for_this_user(case)]
    for number, case in enumerate(cases):
        folder = base / str(number)
        folder.mkdir()
        if IS_ROOT:
            os.chown(folder, ME, ME)
        build(folder, case["tree"])
    asked = "".join(
        f"{case['do']}\t{base / str(number) / case['path']}\n" for number, case in enumerate(cases)
    )
    user = {"user": ME, "group": ME} if IS_ROOT else {}
    done = subprocess.run(java, input=asked, capture_output=True, text=True, timeout=60, check=True, **user)  # type: ignore[call-overload]  # user and group, or neither
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases)
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        check_answer(answer, case, base / str(number))


def test_an_error_names_the_owner_and_a_remedy(base: Path, as_me: None) -> None:
    (base / "a").mkdir(mode=0o700)
    (base / "a").chmod(0o775)
    with pytest.raises(UnsafePathError, match=r"can write to .*/a \(mode 0775\).* or set the option"):
        make_private_folder(base / "a", "set the option")
    if IS_ROOT:
        with pytest.raises(
            UnsafePathError, match=rf"belongs to root \(uid 0\), this process to uid {ME}: set"
        ):
            check_private_folder(Path("/"), "set the option")


def test_folders_above_are_never_open_to_others(base: Path, as_me: None) -> None:
    before = os.umask(0)
    try:
        make_private_folder(base / "a" / "b")
        make_own_folder(base / "c")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((base / name).stat().st_mode) for name in ("a", "a/b", "c")]
    assert modes == [0o755, 0o700, 0o700]


def test_two_concurrent_creations_of_a_folder(base: Path, as_me: None) -> None:
    wrong: list[BaseException] = []

    def make() -> None:
        try:
            make_private_folder(base / "a" / "b" / "c")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_new_file_is_closed_to_others(base: Path, as_me: None) -> None:
    with os.fdopen(open_private_file(base / "f", os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as file:
        file.write("x")
    assert stat.S_IMODE((base / "f").stat().st_mode) == 0o600


def test_a_link_or_file_is_no_private_socket(base: Path) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(base / "s"))
    (base / "l").symlink_to("s")
    (base / "f").write_text("")
    check_private_socket(base / "s")
    for other in ("l", "f"):
        with pytest.raises(UnsafePathError, match="is not a socket"):
            check_private_socket(base / other)
    if IS_ROOT:
        os.chown(base / "s", OTHER, OTHER)
        with pytest.raises(UnsafePathError, match="belongs to"):
            check_private_socket(base / "s")
