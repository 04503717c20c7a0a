"""Addresses of services: the same rule for all that sends passwords and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.errors import OptionError
from lockgate.framework.governance import SolrAudit
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
from lockgate.framework.net import address_fault


@pytest.mark.parametrize(
    ("url", "has_secret", "fault"),
    [
        ("https://host", True, None),
        ("http://host:6080/path", False, None),
        ("http://[::1]:80", True, None),
        ("http://127.1.2.3", True, None),
        ("http://localhost", True, None),
        ("http://localhost.example", True, "in the clear"),
        ("http://host", True, "in the clear"),
        ("https://ann:s3cret@host", False, "holds a user or password"),
        ("https://s3cret@host", False, "holds a user or password"),
        ("https://:s3cret@host", False, "holds a user or password"),
        ("ftp://host", False, "is not an address"),
        ("host:80", False, "is not an address"),
        ("https://", False, "is not an address"),
        ("https://host:s3cret", False, "is not an address"),
        ("https://[s3cret", False, "is not an address"),
    ],
)
def test_what_may_be_an_address(url: str, has_secret: bool, fault: str | None) -> None:
    found = address_fault(url, has_secret=has_secret)
    assert found is None if fault is None else found is not None and fault in found
    assert "s3cret" not in f"{found}"


def test_no_client_shows_the_password_in_an_address(tmp_path: Path) -> None:
    for url in ("https://ann:s3cret@host", "https://host:s3cret"):
        for make in (lambda url: AdminSettings((url,), "lake", tmp_path), SolrAudit):
            with pytest.raises(OptionError) as refused:
                make(url)
            assert "s3cret" not in str(refused.value)
