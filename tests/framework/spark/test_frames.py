"""Frames of the bridge: the vectors of `tests/fixtures/bridge_frames.json`, which the connector runs too."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import BridgeError
from lockgate.framework.spark.bridge.transport import LARGEST_FRAME, LARGEST_MESSAGE, Frames

VECTORS = json.loads((Path(__file__).parents[2] / "fixtures" / "bridge_frames.json").read_text())
# Longer payloads would take gigabytes here; their headers are those of shorter ones but for the number.
FRAMES = [each for each in VECTORS["frames"] if each["length"] <= LARGEST_FRAME + 1]

# Python sends what is short in the frame itself.
SENT = [each for each in FRAMES if each["inline"] or each["length"] > LARGEST_FRAME]


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[socket.socket, Frames]]:
    """The connector's end of a socket, and the frames of Python's."""
    tmp_path.chmod(0o700)
    theirs, ours = socket.socketpair()
    theirs.settimeout(10)
    ours.settimeout(10)
    with theirs, ours:
        yield theirs, Frames(ours, tmp_path, "connection")


def test_the_vectors_end_at_the_limits() -> None:
    lengths = {
        inline: max(f["length"] for f in VECTORS["frames"] if f["inline"] is inline)
        for inline in (True, False)
    }
    assert lengths == {True: LARGEST_FRAME, False: LARGEST_MESSAGE}


@pytest.mark.parametrize("case", FRAMES, ids=lambda case: case["header"])
def test_frames_are_read(ends: tuple[socket.socket, Frames], tmp_path: Path, case: dict[str, Any]) -> None:
    theirs, frames = ends
    payload = b"x" * case["length"]
    if case["inline"]:
        received = _while_sending(theirs, bytes.fromhex(case["header"]) + payload, frames)
    else:
        question = tmp_path / "connection.question"
        question.write_bytes(payload)
        question.chmod(0o600)
        received = _while_sending(theirs, bytes.fromhex(case["header"]), frames)
    assert received == payload


def _while_sending(theirs: socket.socket, data: bytes, frames: Frames) -> bytes | None:
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(theirs.sendall, data)
        received = frames.receive()
        sending.result()
    return received


@pytest.mark.parametrize("case", SENT, ids=lambda case: case["header"])
def test_frames_are_written(ends: tuple[socket.socket, Frames], case: dict[str, Any]) -> None:
    theirs, frames = ends
    with ThreadPoolExecutor(1) as pool, theirs.makefile("rb") as received:
        sending = pool.submit(frames.send, b"x" * case["length"])
        assert received.read(5).hex() == case["header"]
        if case["inline"]:
            assert received.read(case["length"]) == b"x" * case["length"]
        sending.result()


@pytest.mark.parametrize("header", VECTORS["refused"])
def test_what_is_no_frame_is_refused(ends: tuple[socket.socket, Frames], header: str) -> None:
    theirs, frames = ends
    theirs.sendall(bytes.fromhex(header))
    with pytest.raises(BridgeError, match="invalid frame"):
        frames.receive()
