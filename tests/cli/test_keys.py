"""`lockgate keys`: making, listing and rolling keys from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockgate.cli.main import main
from lockgate.framework.keys import (
    KeyAlgorithm,
    KeyFileProvider,
    KeyMetadata,
    KeyProvider,
    key_spec,
    provider_from,
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A key file with `pii` and `fin`."""
    found = tmp_path / "keys.json"
    assert main(["keys", "create", str(found), "pii", "fin"]) == 0
    return found


def told(capsys: Capture, *arguments: str) -> dict[str, list[dict[str, object]]]:
    capsys.readouterr()
    assert main(["keys", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def materials(path: Path) -> list[str]:
    return [entry["material"] for entry in json.loads(path.read_text())["keys"]]


def test_a_new_key_file(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "keys.json"
    made = told(capsys, "create", f"file:{path}", "pii", "--bits", "256")
    assert made["keys"] == [{"name": "pii", "version": 0, "algorithm": "AES_CTR_256", "newest": True}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_more(path: Path, capsys: Capture) -> None:
    held = materials(path)
    assert main(["keys", "create", str(path), "health", "--bits", "256"]) == 0
    assert "1 new key of 256 bits: health@0" in capsys.readouterr().out
    assert set(held) < set(materials(path))
    assert KeyFileProvider(path).key_names() == ["fin", "health", "pii"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_that_is_there(path: Path, capsys: Capture) -> None:
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["keys", "create", str(path), "health", "pii"]) == 1
    printed = capsys.readouterr()
    assert f"to create a new version, run: lockgate keys roll {path} pii" in printed.err
    assert printed.err.count("\n") == 1
    assert main(["keys", "create", str(path), "x", "x"]) == 1
    assert "named twice" in capsys.readouterr().err
    assert path.read_bytes() == before, "all of them or none"


def test_a_rolled_key_has_a_newer_version(path: Path, capsys: Capture) -> None:
    made = told(capsys, "roll", str(path), "pii")
    assert made["keys"] == [{"name": "pii", "version": 1, "algorithm": "AES_CTR_128", "newest": True}]
    assert main(["keys", "roll", str(path), "pii", "fin", "--bits", "256"]) == 0
    assert "pii@2 (AES_CTR_256), fin@1 (AES_CTR_256)" in capsys.readouterr().out
    assert str(provider_from(str(path)).current_key("pii")) == "pii@2"
    assert path.stat().st_mode & 0o777 == 0o600


def test_rolling_what_is_not_there(path: Path, capsys: Capture) -> None:
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["keys", "roll", str(path), "fin", "pij"]) == 1
    assert "did you mean 'pii'" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["keys", "roll", str(path.with_name("none.json")), "pii"]) == 1
    assert "none.json" in capsys.readouterr().err


def test_a_list_shows_versions_of_keys(path: Path, capsys: Capture) -> None:
    assert main(["keys", "roll", str(path), "pii"]) == 0
    capsys.readouterr()
    assert main(["keys", "list", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines() == [
        "fin@0  AES_CTR_128",
        "pii@0  AES_CTR_128  (older)",
        "pii@1  AES_CTR_128",
    ]
    newest = [
        (each["name"], each["version"]) for each in told(capsys, "list", str(path))["keys"] if each["newest"]
    ]
    assert newest == [("fin", 0), ("pii", 1)]


def test_no_byte_of_a_key_is_printed(path: Path, capsys: Capture) -> None:
    for arguments in (["list", str(path)], ["roll", str(path), "pii"], ["create", str(path), "more"]):
        for json_too in ([], ["--json"]):
            main(["keys", *arguments, *json_too])
    printed = capsys.readouterr()
    for material in materials(path):
        assert material not in printed.out + printed.err


class ReadOnly(KeyProvider):
    """Holds one key, and makes none."""

    def key_names(self) -> list[str]:
        return ["pii"]

    def current_key(self, name: str) -> KeyMetadata:
        return KeyMetadata(name, 0, KeyAlgorithm.AES_CTR_128)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        return bytes(16)


@pytest.mark.parametrize("command", ["create", "roll"])
def test_providers_that_only_read(command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_spec, "_from_plugin", lambda scheme, text: ReadOnly())
    name = "new" if command == "create" else "pii"
    assert main(["keys", command, "vault://user:secret@host", name]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "in the key store itself" in printed.err
    assert "secret" not in printed.err + printed.out
    assert main(["keys", "create", "vault://user:secret@host", "pii"]) == 1
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["create"], ["create", "x"], ["roll", "x"], ["list"], ["create", "x", "y", "--bits", "64"]]
)
def test_wrong_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["keys", *arguments])
    assert ended.value.code == 2


@pytest.mark.parametrize("command", ["create", "list", "roll"])
def test_help_has_examples(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["keys", command, "--help"])
    assert ended.value.code == 0
    assert f"  lockgate keys {command} " in capsys.readouterr().out
