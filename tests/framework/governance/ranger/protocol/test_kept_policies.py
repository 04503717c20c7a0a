"""The folder of kept policies on a full disk, and in the hands of another account."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ranger_admin
from full_disk import largest_file
from ranger_admin import StandIn
from ranger_world import allow, allowed, service

from lockgate.errors import UnsafePathError
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def admin() -> Iterator[StandIn]:
    with ranger_admin.running() as found:
        found.has["plugins"] = service(allow("lake.db.t.*", users=["ann"]), policyVersion=1)
        yield found


def policies(folder: Path, url: str, oldest: float | None = None) -> AdminPolicies:
    settings = AdminSettings((url,), "lake", folder / "cache", oldest_seconds=oldest)
    return AdminPolicies(settings, poll=False)


def test_policies_that_the_disk_does_not_take_are_in_use(admin: StandIn, tmp_path: Path) -> None:
    found = policies(tmp_path, admin.url)
    found.refresh()
    admin.has["plugins"] = service(allow("lake.db.u.*", users=["ann"]), policyVersion=2)
    with largest_file(100):
        found.refresh()
    assert found.version == 2
    assert not allowed(found.engine(), "lake.db.t.c"), "a revoked right ends, whatever the disk does"
    assert found.last_error is not None
    assert "does not take them" in found.last_error
    assert [path.name for path in (tmp_path / "cache").iterdir() if ".new-" in path.name] == []
    assert policies(tmp_path, NOWHERE).version == 1, "the last good policies are whole"


def test_policies_that_were_not_kept_are_kept_later(admin: StandIn, tmp_path: Path) -> None:
    found = policies(tmp_path, admin.url)
    found.refresh()
    kept = tmp_path / "cache" / "lockgate_lake_policies.json"
    os.utime(kept, (time.time() - 3600,) * 2)
    admin.has["plugins"]["policyVersion"] = 2
    with largest_file(100):
        found.refresh()
        found.refresh()  # the admin has nothing newer, and the disk is as full
    old = policies(tmp_path, NOWHERE, oldest=60)
    assert old.version == 1
    assert old.age_seconds > 3500, "old policies do not pass for those that the admin has confirmed"
    found.refresh()
    assert found.last_error is None
    assert policies(tmp_path, NOWHERE).version == 2
    assert policies(tmp_path, NOWHERE).age_seconds < 60


def test_a_first_download_that_cannot_be_kept_is_in_use(admin: StandIn, tmp_path: Path) -> None:
    found = policies(tmp_path, admin.url)
    with largest_file(0):
        found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_the_folder_of_another_account_is_refused(admin: StandIn, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    os.chown(tmp_path / "cache", 12345, 12345)
    with pytest.raises(UnsafePathError, match="cache"):
        policies(tmp_path, admin.url)
    os.chown(tmp_path / "cache", 0, 0)
    found = policies(tmp_path, admin.url)
    os.chown(tmp_path / "cache", 12345, 12345)
    found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")
    assert found.last_error is not None
    assert list((tmp_path / "cache").iterdir()) == [], (
        "nothing is written where another account can change it"
    )


def test_a_folder_that_others_can_write_to_is_refused(admin: StandIn, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(UnsafePathError, match="cache"):
        policies(tmp_path, admin.url)
