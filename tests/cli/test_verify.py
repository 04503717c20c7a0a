"""`lockgate orc verify`: what it says of each file, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.cli.main import main
from lockgate.framework.keys import KeyFileProvider, create_key_file
from lockgate.framework.orc import inspect_file, write_table

Capture = pytest.CaptureFixture[str]
ROWS = pa.table({"id": range(2000), "ssn": [f"{i * 7919 % 2000:09d}" for i in range(2000)]})


@pytest.fixture
def keys(tmp_path: Path) -> KeyFileProvider:
    """A key file with `pii`."""
    return create_key_file(tmp_path / "keys.json", ["pii"])


@pytest.fixture
def sound(tmp_path: Path, keys: KeyFileProvider) -> Path:
    """An encrypted file with tags."""
    path = tmp_path / "sound.orc"
    write_table(ROWS, str(path), encrypt="pii:ssn", keys=keys)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file of others."""
    path = tmp_path / "plain.orc"
    pyarrow.orc.write_table(ROWS, path, compression="zstd")
    return path


def flipped(path: Path, share: float) -> Path:
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 0xFF
    found = path.with_name(f"flipped-{path.name}")
    found.write_bytes(data)
    return found


def verify(capsys: Capture, code: int, *arguments: Any) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["orc", "verify", *map(str, arguments), "--json"]) == code
    printed = capsys.readouterr()
    assert not printed.err
    return [json.loads(line) for line in printed.out.splitlines()]


def test_a_sound_file_is_verified(sound: Path, keys: KeyFileProvider, capsys: Capture) -> None:
    (found,) = verify(capsys, 0, sound, "--keys", keys.path, "--require")
    assert (found["status"], found["ok"], found["damage"]) == ("verified", True, [])
    assert found["bytes_checked"] == sound.stat().st_size


def test_a_flipped_byte_is_damage(sound: Path, keys: KeyFileProvider, capsys: Capture) -> None:
    damaged = flipped(sound, 0.3)
    (found,) = verify(capsys, 1, damaged, "--keys", keys.path)
    assert (found["status"], found["ok"]) == ("damaged", False)
    assert len(found["damage"]) == 1
    assert "are not as they were written" in found["damage"][0]
    assert main(["orc", "verify", str(damaged), "--keys", keys.path]) == 1
    assert found["damage"][0] in capsys.readouterr().out


def test_damaged_where_nothing_can_be_located(sound: Path, keys: KeyFileProvider, capsys: Capture) -> None:
    sound.write_bytes(sound.read_bytes()[:-40])
    (found,) = verify(capsys, 1, sound, "--keys", keys.path)
    assert found["status"] == "damaged"
    assert "is not a valid ORC file" in found["detail"]


def test_without_a_key_a_file_is_unverified(sound: Path, capsys: Capture) -> None:
    (found,) = verify(capsys, 0, sound)
    assert (found["status"], found["rows_decoded"]) == ("unverified", 2000)
    assert "no key" in found["detail"]
    verify(capsys, 1, sound, "--require")


def test_a_file_without_tags_is_decoded(plain: Path, capsys: Capture) -> None:
    (found,) = verify(capsys, 0, plain)
    assert (found["status"], found["rows_decoded"]) == ("absent", 2000)
    assert "no tags" in found["detail"]
    assert "does not show whether values were changed" in found["detail"]
    verify(capsys, 1, plain, "--require")


def test_what_does_not_decode(plain: Path, capsys: Capture) -> None:
    stripe = inspect_file(plain).stripes[0]
    data = bytearray(plain.read_bytes())
    start = stripe.offset + stripe.index_bytes
    data[start : start + stripe.data_bytes] = b"\xff" * stripe.data_bytes
    plain.write_bytes(data)
    (found,) = verify(capsys, 1, plain)
    assert found["status"] == "damaged"
    assert "does not decode" in found["detail"]


def test_all_files_have_their_say(sound: Path, plain: Path, keys: KeyFileProvider, capsys: Capture) -> None:
    damaged = flipped(sound, 0.3)
    found = verify(capsys, 1, damaged, plain.with_name("none.orc"), sound, plain, "--keys", keys.path)
    assert [each["status"] for each in found] == ["damaged", "failed", "verified", "absent"]
    assert "there is no file" in found[1]["detail"]
    assert not found[1]["ok"]


def test_another_key_is_no_damage(sound: Path, tmp_path: Path, capsys: Capture) -> None:
    other = create_key_file(tmp_path / "other.json", ["pii"])
    (found,) = verify(capsys, 1, sound, "--keys", other.path)
    assert found["status"] == "failed"
    assert "does not open" in found["detail"]
    assert main(["orc", "verify", str(sound), "--keys", other.path]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert not printed.out


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_deadlines_that_make_no_sense(seconds: str, plain: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["orc", "verify", str(plain), f"--deadline={seconds}"])
    assert ended.value.code == 2


def test_a_file_cannot_steer_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "\x1b[2J.orc"
    pyarrow.orc.write_table(ROWS, path)
    assert main(["orc", "verify", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
