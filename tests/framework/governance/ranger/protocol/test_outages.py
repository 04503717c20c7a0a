"""An admin that is down, slow or broken, and a process that is killed while it writes its cache."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, allowed, service

from lockgate.cli.main import main
from lockgate.errors import OptionError, PolicyError
from lockgate.framework.governance.ranger.protocol.admin_client import Content
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.download_cache import PolicyCache
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies


@pytest.fixture
def admin() -> Iterator[StandIn]:
    with ranger_admin.running() as found:
        found.has["plugins"] = service(allow("lake.db.t.*", users=["ann"]), policyVersion=1)
        yield found


def settings(admin: StandIn, folder: Path, **more: Any) -> AdminSettings:
    return AdminSettings(
        **{"urls": (admin.url,), "service": "lake", "cache_folder": folder / "cache", **more}
    )


def refreshed(admin: StandIn, folder: Path, **more: Any) -> AdminPolicies:
    found = AdminPolicies(settings(admin, folder, **more), poll=False)
    found.refresh()
    return found


def test_a_slow_admin_holds_up_nobody_for_long(admin: StandIn, tmp_path: Path) -> None:
    found = refreshed(admin, tmp_path, timeout_seconds=0.2)
    admin.slow = 5.0
    start = time.monotonic()
    with pytest.raises(AdminError, match="no complete answer in time"):
        found.refresh()
    assert time.monotonic() - start < admin.slow
    assert allowed(found.engine(), "lake.db.t.c")


def test_an_answer_of_a_byte_now_and_then_ends(admin: StandIn, tmp_path: Path) -> None:
    found = refreshed(admin, tmp_path, timeout_seconds=0.5)
    admin.has["plugins"]["policyVersion"] = 2
    admin.trickle = 0.02
    start = time.monotonic()
    with pytest.raises(AdminError, match="no complete answer in time"):
        found.refresh()
    # All of it would take minutes.
    assert time.monotonic() - start < 30
    assert found.version == 1


def test_decisions_go_on_while_an_admin_is_slow(admin: StandIn, tmp_path: Path) -> None:
    refreshed(admin, tmp_path)
    admin.slow = 3.0
    polling = AdminPolicies(settings(admin, tmp_path, timeout_seconds=1.0))
    try:
        start = time.monotonic()
        assert allowed(polling.engine(), "lake.db.t.c"), "from the cache at once"
        assert time.monotonic() - start < 1.0, "less than it waits for the admin"
    finally:
        polling.close()


def test_the_first_decision_waits_for_the_first_download(admin: StandIn, tmp_path: Path) -> None:
    admin.slow = 0.3
    polling = AdminPolicies(settings(admin, tmp_path))
    try:
        assert allowed(polling.engine(), "lake.db.t.c")
    finally:
        polling.close()


def test_without_policies_a_decision_fails_in_time(admin: StandIn, tmp_path: Path) -> None:
    admin.broken = 500
    polling = AdminPolicies(settings(admin, tmp_path, timeout_seconds=0.3, poll_seconds=60))
    try:
        with pytest.raises(PolicyError, match="status 500"):
            polling.engine()
    finally:
        polling.close()


def test_the_age_counts_from_the_admins_last_answer(admin: StandIn, tmp_path: Path) -> None:
    found = refreshed(admin, tmp_path, oldest_seconds=60.0)
    path = tmp_path / "cache" / "lockgate_lake_policies.json"
    os.utime(path, (time.time() - 3600,) * 2)
    admin.broken = 503
    old = AdminPolicies(settings(admin, tmp_path, oldest_seconds=60.0), poll=False)
    assert 3500 < old.age_seconds < 3700
    with pytest.raises(PolicyError, match=r"36.. s old, and 60 s are allowed"):
        old.engine()
    admin.broken = 0
    old.refresh()  # unchanged, but confirmed
    assert old.age_seconds < 60
    assert allowed(old.engine(), "lake.db.t.c")
    assert found.version == 1


def test_the_age_is_shown_and_limited_by_an_option(
    admin: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = "ranger.plugin.paimon."
    said = {
        f"{prefix}service.name": "lake",
        f"{prefix}policy.rest.url": admin.url,
        f"{prefix}policy.cache.dir": str(tmp_path / "cache"),
        f"{prefix}policy.maxAgeMs": "90000",
    }
    assert AdminSettings.from_options(said).oldest_seconds == 90
    with pytest.raises(OptionError, match="maxAgeMs"):
        AdminSettings.from_options({**said, f"{prefix}policy.maxAgeMs": "soon"})
    path = tmp_path / "ranger-paimon-security.xml"
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in said.items())
    path.write_text(f"<configuration>{''.join(each)}</configuration>")
    assert main(["policy", "status", str(path)]) == 1
    assert "no policies of service lake are kept" in capsys.readouterr().out
    refreshed(admin, tmp_path)
    assert main(["policy", "status", str(path)]) == 0
    assert "policies of service lake: version 1, confirmed 0 s ago" in capsys.readouterr().out
    kept = tmp_path / "cache" / "lockgate_lake_policies.json"
    os.utime(kept, (time.time() - 100,) * 2)
    assert main(["policy", "status", str(path)]) == 1
    assert "older than 90 s: they allow nothing" in capsys.readouterr().out


def test_a_kill_between_two_renames_leaves_the_version_before(admin: StandIn, tmp_path: Path) -> None:
    refreshed(admin, tmp_path)
    folder = tmp_path / "cache"
    newest = folder / "lockgate_lake_policies.json"
    newest.replace(folder / "lockgate_lake_policies.json.before")
    (folder / "lockgate_lake_policies.json.new-999999999").write_text('{"policies": [')
    again = AdminPolicies(settings(admin, tmp_path, urls=("http://127.0.0.1:9",)), poll=False)
    assert allowed(again.engine(), "lake.db.t.c")
    assert [path.name for path in folder.glob("*.new-*")] == [], "what a killed process left is removed"


WRITER = """
import sys
from pathlib import Path
from lockgate.framework.governance.ranger.protocol.download_cache import PolicyCache
from lockgate.framework.governance.ranger.protocol.admin_client import Content
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
cache = PolicyCache(AdminSettings(("http://127.0.0.1:9",), "lake", Path(sys.argv[1])))
number = 0
while True:
    number += 1
    cache.save(Content.POLICIES, {"policyVersion": number, "policies": ["x" * 100] * 5000})
    print(number, flush=True)
"""


def test_a_kill_while_the_cache_is_written_leaves_whole_policies(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = PolicyCache(AdminSettings(("http://127.0.0.1:9",), "lake", folder))
    for wait in (0.0, 0.003, 0.011):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout is not None
        while int(process.stdout.readline()) < 3:
            pass
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait(10)
        process.stdout.close()
        said = int(rest[-1]) if rest else 3
        found = cache.load(Content.POLICIES)
        assert found is not None
        assert found[0]["policyVersion"] >= said - 1
        assert len(found[0]["policies"]) == 5000
    for path in folder.iterdir():
        if ".new-" not in path.name:
            json.loads(path.read_text())
