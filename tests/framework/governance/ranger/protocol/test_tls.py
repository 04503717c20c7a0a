"""Two-way TLS to the admin, with key stores made by keytool, openssl and Hadoop (fixtures/key_stores)."""

from __future__ import annotations

import logging
import shutil
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, allowed, service

from lockgate.errors import OptionError
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.credential_files import PASSWORD_VARIABLE, credential
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies

STORES = Path(__file__).resolve().parents[4] / "fixtures" / "key_stores"
PASSWORD = "trustno1"
KINDS = ("jks", "jceks", "p12", "pem")


@pytest.fixture(scope="module")
def admin() -> Iterator[StandIn]:
    """A stand-in that talks only to clients with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(STORES / "server.pem")
    context.load_verify_locations(STORES / "trust.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with ranger_admin.running(context) as found:
        found.has["plugins"] = service(allow("lake.db.t.*", users=["ann"]), policyVersion=1)
        yield found


def settings(admin: StandIn, folder: Path, **more: Any) -> AdminSettings:
    stores = {
        "ca": STORES / "trust.pem",
        "certificate": STORES / "client.pem",
        "certificate_password": PASSWORD,
    }
    return AdminSettings(
        **{"urls": (admin.url,), "service": "lake", "cache_folder": folder / "cache", **stores, **more}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_show_certificates(admin: StandIn, tmp_path: Path, kind: str) -> None:
    more = {
        "ca": STORES / f"trust.{kind}",
        "certificate": STORES / f"client.{kind}",
        "ca_password": PASSWORD,
        "certificate_password": PASSWORD,
    }
    found = AdminPolicies(settings(admin, tmp_path, **more), poll=False)
    found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")


def test_the_content_says_what_a_store_is(admin: StandIn, tmp_path: Path) -> None:
    """Java's own tools name PKCS12 files `.jks`."""
    shutil.copy(STORES / "client.p12", tmp_path / "client.jks")
    found = settings(admin, tmp_path, certificate=tmp_path / "client.jks", certificate_password=PASSWORD)
    AdminPolicies(found, poll=False).refresh()


def test_a_key_in_a_file_of_its_own(admin: StandIn, tmp_path: Path) -> None:
    text = (STORES / "client.pem").read_text()
    start = text.index("-----BEGIN ENCRYPTED PRIVATE KEY")
    end = text.index("-----END ENCRYPTED PRIVATE KEY-----") + 36
    (tmp_path / "key.pem").write_text(text[start:end])
    (tmp_path / "cert.pem").write_text(text[:start] + text[end:])
    found = settings(admin, tmp_path, certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    AdminPolicies(found, poll=False).refresh()


def test_a_client_without_a_certificate_gets_nothing(admin: StandIn, tmp_path: Path) -> None:
    found = AdminPolicies(settings(admin, tmp_path, certificate=None), poll=False)
    with pytest.raises(AdminError):
        found.refresh()


def test_a_server_of_another_authority_gets_nothing(admin: StandIn, tmp_path: Path) -> None:
    admin.asked.clear()
    found = AdminPolicies(settings(admin, tmp_path, ca=None), poll=False)
    with pytest.raises(AdminError, match="certificate that is not trusted"):
        found.refresh()
    assert not admin.asked


def test_a_name_that_the_certificate_lacks(admin: StandIn, tmp_path: Path) -> None:
    elsewhere = admin.url.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(AdminError):
        AdminPolicies(settings(admin, tmp_path, urls=(elsewhere,)), poll=False).refresh()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("password", ["another", None])
def test_wrong_passwords(admin: StandIn, tmp_path: Path, kind: str, password: str | None) -> None:
    found = settings(admin, tmp_path, certificate=STORES / f"client.{kind}", certificate_password=password)
    with pytest.raises(OptionError, match=f"client.{kind}") as refused:
        found.tls()
    assert "another" not in str(refused.value).replace("is another one", "")


@pytest.mark.parametrize("cut", [0, 3, 40, -30])
@pytest.mark.parametrize("name", [f"{what}.{kind}" for what in ("trust", "client") for kind in KINDS])
def test_damaged_stores(admin: StandIn, tmp_path: Path, name: str, cut: int) -> None:
    content = (STORES / name).read_bytes()
    (tmp_path / name).write_bytes(content[:cut])
    field = "ca" if name.startswith("trust") else "certificate"
    more = {field: tmp_path / name, f"{field}_password": PASSWORD}
    with pytest.raises(OptionError, match=name):
        settings(admin, tmp_path, **more).tls()


def test_stores_of_the_wrong_sort(admin: StandIn, tmp_path: Path) -> None:
    for kind in ("jks", "p12", "pem"):
        more = {"certificate": STORES / f"trust.{kind}", "certificate_password": PASSWORD}
        with pytest.raises(OptionError, match="private key"):
            settings(admin, tmp_path, **more).tls()
    with pytest.raises(OptionError, match="no certificate to trust"):
        settings(admin, tmp_path, ca=STORES / "client.p12", ca_password=PASSWORD).tls()
    with pytest.raises(OptionError, match="cannot be read"):
        settings(admin, tmp_path, ca=tmp_path / "absent.jks").tls()


def test_the_private_key_is_on_no_disk(
    admin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    original = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, path: str, *more: Any) -> None:
        opened.append(str(Path(path).readlink()))
        original(self, path, *more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    settings(admin, tmp_path, certificate=STORES / "client.jks", certificate_password=PASSWORD).tls()
    assert opened == ["/memfd:lockgate-tls (deleted)"]


def test_passwords_come_from_credential_files(admin: StandIn, tmp_path: Path) -> None:
    """The three files of a Ranger plugin are read as they are."""
    security, tls = tmp_path / "ranger-paimon-security.xml", tmp_path / "ranger-policymgr-ssl.xml"
    audit = tmp_path / "ranger-paimon-audit.xml"
    secret = f"jceks://file{STORES}/credentials.jceks"
    prefix, stores = "ranger.plugin.paimon.", "xasecure.policymgr.clientssl."
    write(
        security,
        {
            f"{prefix}service.name": "lake",
            f"{prefix}policy.source.impl": "org.apache.ranger.admin.client.RangerAdminRESTClient",
            f"{prefix}policy.rest.url": admin.url,
            f"{prefix}policy.rest.ssl.config.file": str(tls),
            f"{prefix}policy.pollIntervalMs": "30000",
            f"{prefix}policy.cache.dir": str(tmp_path / "cache"),
        },
    )
    write(
        tls,
        {
            f"{stores}keystore": str(STORES / "client.jks"),
            f"{stores}keystore.credential.file": secret,
            f"{stores}keystore.type": "jks",
            f"{stores}truststore": str(STORES / "trust.jks"),
            f"{stores}truststore.credential.file": secret,
            f"{stores}truststore.type": "jks",
        },
    )
    write(audit, {"xasecure.audit.is.enabled": "true"})
    found = AdminSettings.from_files(security, audit, tls)
    assert PASSWORD not in repr(found)
    AdminPolicies(found, poll=False).refresh()
    tls.write_text(tls.read_text().replace(">jks<", ">bcfks<"))
    with pytest.raises(OptionError, match="type is BCFKS"):
        AdminSettings.from_files(security, tls)


def test_credential_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"localjceks://file{STORES}/credentials.jceks"
    assert (
        credential(url, "sslkeystore") == credential(f"{STORES}/credentials.jceks", "SSLKeyStore") == PASSWORD
    )
    with pytest.raises(OptionError, match=r"no alias 'sslKeyStor'.*sslkeystore") as refused:
        credential(url, "sslKeyStor")
    assert PASSWORD not in str(refused.value)
    with pytest.raises(OptionError, match="address of a local credential file"):
        credential("jceks://hdfs@nn1:8020/secret.jceks", "a")
    with pytest.raises(OptionError, match="cannot be read"):
        credential(f"{tmp_path}/absent", "a")
    (tmp_path / "half").write_bytes((STORES / "credentials.jceks").read_bytes()[:200])
    with pytest.raises(OptionError, match="damaged"):
        credential(f"{tmp_path}/half", "a")
    monkeypatch.setenv(PASSWORD_VARIABLE, "another")
    with pytest.raises(OptionError, match=PASSWORD_VARIABLE):
        credential(url, "sslKeyStore")


def test_the_library_may_be_absent(admin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jks", None)
    with pytest.raises(OptionError, match=r"pip install 'lockgate\[jceks\]'"):
        settings(admin, tmp_path, ca=STORES / "trust.jks").tls()
    settings(admin, tmp_path, ca=STORES / "trust.p12", ca_password=PASSWORD).tls()


def test_nothing_secret_is_logged(admin: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = settings(admin, tmp_path, certificate=STORES / "client.jks", certificate_password=PASSWORD)
    AdminPolicies(found, poll=False).refresh()
    assert PASSWORD not in caplog.text + repr(found)


def write(path: Path, values: dict[str, str]) -> None:
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    path.write_text(f"<configuration>{''.join(each)}</configuration>")
