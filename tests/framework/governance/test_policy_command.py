"""The command `lockgate policy test`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from ranger_world import allow, mask, service

from lockgate.errors import InputError
from lockgate.framework.governance.plugin import lockgate_cli_commands


def run(path: Path) -> int:
    parser = argparse.ArgumentParser()
    lockgate_cli_commands()["policy"](parser)
    options = parser.parse_args(["test", str(path)])
    return int(options.run(options))


def file_of(tmp_path: Path, allowed: bool) -> Path:
    request = {"resource": {"elements": {"catalog": "lake", "database": "db", "table": "t", "column": "c"}}}
    request |= {"accessType": "select", "user": "ann", "userGroups": ["staff"]}
    masked = mask("lake.db.t.c", "MASK_HASH", groups=["staff"])
    tests = [
        {"name": "reads", "request": request, "result": {"isAllowed": allowed}},
        {
            "name": "masked",
            "request": request,
            "dataMaskResult": {"additionalInfo": {"maskType": "MASK_HASH"}, "policyId": masked["id"]},
        },
    ]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(service(allow("lake.db.*.*", groups=["staff"]), masked, tests=tests)))
    return path


def test_unexpected_decisions_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file_of(tmp_path, allowed=True)) == 0
    assert capsys.readouterr().out == "2 tests, 0 unexpected decisions\n"
    assert run(file_of(tmp_path, allowed=False)) == 1
    assert "test 1 (reads): result: allowed is True, not False" in capsys.readouterr().out


def test_a_file_without_tests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(service()))
    with pytest.raises(InputError, match="tests"):
        run(path)
    path.write_text("{")
    with pytest.raises(InputError, match="JSON"):
        run(path)
