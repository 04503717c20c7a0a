"""Files without read permission: every function that opens one raises an error with its name and advice."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate import keys, orc
from lockgate.errors import StorageDeniedError

KEYS = keys.MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
ROWS = pa.table({"id": [1], "ssn": ["123"]})

CALLS: dict[str, Callable[[Path, Path], Any]] = {
    "read": lambda closed, other: orc.EncryptedOrcFile(closed, KEYS).read(),
    "inspect": lambda closed, other: orc.inspect_file(closed, KEYS),
    "audit": lambda closed, other: orc.audit_file(closed, {"ssn": "pii"}, KEYS),
    "verify": lambda closed, other: orc.verify_file(closed, KEYS),
    "decrypt": lambda closed, other: orc.decrypt_file(closed, other, keys=KEYS),
    "encrypt": lambda closed, other: orc.encrypt_file(closed, other, encrypt="pii:ssn", keys=KEYS),
    "rekey": lambda closed, other: orc.rekey(closed, other, keys=KEYS),
    "write": lambda closed, other: orc.write_table(ROWS, closed, encrypt="pii:ssn", keys=KEYS),
    "write in batches": lambda closed, other: orc.write_batches(
        ROWS.to_batches(), closed, schema=ROWS.schema
    ),
    "write step by step": lambda closed, other: orc.OrcWriter(closed, ROWS.schema),
    "key file": lambda closed, other: keys.create_key_file(closed, ["pii"]),
}


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the operating system opens for no user, not even root."""
    folder = tmp_path / "closed"
    folder.mkdir()

    def refusing(opened: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and Path(path).is_relative_to(folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return opened(path, *arguments, **options)

        return refuse

    for module in (os, builtins):
        monkeypatch.setattr(module, "open", refusing(module.open))
    return folder / "file"


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_file_is_named(closed: Path, tmp_path: Path, call: str) -> None:
    with pytest.raises(StorageDeniedError, match=r"closed/\.?file.*ask the owner") as raised:
        CALLS[call](closed, tmp_path / "other")
    assert isinstance(raised.value, PermissionError)
    assert not (tmp_path / "other").exists()


def test_a_file_that_is_closed_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orc.write_table(ROWS, tmp_path / "file")
    with orc.EncryptedOrcFile(tmp_path / "file") as file:

        def away(*arguments: Any, **options: Any) -> bytes:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), file.name)

        monkeypatch.setattr(type(file._source), "read", away, raising=False)
        monkeypatch.setattr(type(file._source), "read_at", away, raising=False)
        with pytest.raises(StorageDeniedError, match="file: "):
            list(file.iter_batches())
