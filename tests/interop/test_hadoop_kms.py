"""Hadoop's real KMS, from Maven Central: what the stand-in of the other tests claims, and TLS.

Needs mvn and Java; the jars come by Maven the first time.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest
from kms_stand_in import stand_in

from lockgate.errors import (
    AlreadyExistsError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    WrongKeyError,
)
from lockgate.framework.keys import (
    HadoopKmsKeyProvider,
    JceksKeyProvider,
    KeyAlgorithm,
    KeyMetadata,
    KeyProvider,
    list_keys,
    provider_from,
)
from lockgate.framework.keys.hadoop.jceks import PASSWORD_VARIABLE
from lockgate.framework.net import HttpLimits
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.testing.key_provider_suite import KeyProviderConformance

pytestmark = pytest.mark.interop

VERSION = "3.4.1"
MAIN = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer"
PASSWORD = "correct-horse"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>kms-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-kms</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>"""
ACLS = {
    "hadoop.kms.acl.GET": "nobody",
    "hadoop.kms.acl.CREATE": "admin",
    "hadoop.kms.acl.ROLLOVER": "admin",
    "default.key.acl.MANAGEMENT": "admin",
    "default.key.acl.READ": "*",
    "default.key.acl.DECRYPT_EEK": "admin,alice",
    "key.acl.pii.MANAGEMENT": "admin",
    "key.acl.pii.READ": "*",
    "key.acl.pii.DECRYPT_EEK": "admin,alice",
}


@dataclass(frozen=True)
class RealKms:
    """A KMS that runs."""

    port: int
    store: Path
    ca: Path | None = None

    def spec(self, user: str) -> str:
        """How the provider is told where it is."""
        if self.ca is None:
            return f"kms://http@localhost:{self.port}/kms?user={user}"
        return f"kms://https@localhost:{self.port}/kms?user={user}&ca={self.ca}"


def configuration(path: Path, values: dict[str, str]) -> None:
    items = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    path.write_text(f"<configuration>{items}</configuration>")


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jars of the KMS and all that it needs."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("needs mvn and java")
    folder = tmp_path_factory.mktemp("kms-jars")
    (folder / "pom.xml").write_text(POM)
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"Maven could not fetch Hadoop's KMS: {done.stdout[-300:]}")
    return folder / "lib"


@pytest.fixture(scope="session", params=["http", "https"])
def real_kms(
    request: pytest.FixtureRequest, jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealKms]:
    """A KMS with the keys pii (128 bits, two versions) and fin (256 bits), made by its own interface."""
    folder = tmp_path_factory.mktemp(f"kms-{request.param}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ca = _configure(folder, port, stand_in() if request.param == "https" else None)
    command = ["java", "-Xmx200m", "--add-opens", "java.base/java.lang=ALL-UNNAMED"]
    command += [
        "-Dlog4j.configuration=log4j.properties",
        f"-Dkms.config.dir={folder}",
        f"-Dkms.log.dir={folder}",
    ]
    command += ["-cp", f"{folder}:{jars}/*", MAIN]
    environment = {"PATH": "/usr/bin:/bin", PASSWORD_VARIABLE: PASSWORD}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
    try:
        kms = RealKms(port, folder / "kms.keystore", ca)
        _wait(kms, process, folder / "log")
        yield kms
    finally:
        process.terminate()
        process.wait(30)


def _configure(folder: Path, port: int, certificates: Any) -> Path | None:
    site = {
        "hadoop.kms.key.provider.uri": f"jceks://file@{folder}/kms.keystore",
        "hadoop.kms.http.host": "localhost",
        "hadoop.kms.http.port": str(port),
        "hadoop.tmp.dir": str(folder / "tmp"),
        "hadoop.kms.ssl.enabled": str(certificates is not None).lower(),
    }
    configuration(folder / "kms-site.xml", site)
    configuration(folder / "core-site.xml", {"hadoop.tmp.dir": str(folder / "tmp")})
    configuration(folder / "kms-acls.xml", ACLS)
    (folder / "log4j.properties").write_text(
        "log4j.rootLogger=WARN,C\nlog4j.appender.C=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.C.layout=org.apache.log4j.PatternLayout\n"
    )
    if certificates is None:
        return None
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    pem: Path = certificates.certificate(folder, "localhost")
    private: Any = serialization.load_pem_private_key(pem.read_bytes(), None)
    made = x509.load_pem_x509_certificate(pem.read_bytes())
    locked = serialization.BestAvailableEncryption(b"changeit")
    (folder / "server.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"kms", private, made, None, locked)
    )
    names = {
        "location": str(folder / "server.p12"),
        "password": "changeit",
        "keypassword": "changeit",
        "type": "pkcs12",
    }
    configuration(
        folder / "ssl-server.xml", {f"ssl.server.keystore.{name}": value for name, value in names.items()}
    )
    return pem


def _wait(kms: RealKms, process: subprocess.Popen[bytes], log: Path) -> None:
    admin = HadoopKmsKeyProvider(kms.spec("admin"), limits=HttpLimits(total=20, waits=()))
    ends = time.monotonic() + 120
    while True:
        try:
            admin.key_names()
            break
        except KeyServiceError:
            if process.poll() is not None or time.monotonic() > ends:
                pytest.fail(f"the KMS did not start: {log.read_text()[-2000:]}")
            time.sleep(0.5)
    admin.create_key("pii")
    admin.create_key("fin", 256)
    admin.roll_key("pii")


class TestRealKms(KeyProviderConformance):
    """The suite that every provider passes."""

    @pytest.fixture(autouse=True)
    def _place(self, real_kms: RealKms) -> None:
        self.kms = real_kms

    def make_provider(self) -> KeyProvider:
        return provider_from(self.kms.spec("alice"))

    def make_denied(self) -> KeyProvider:
        return provider_from(self.kms.spec("bob"))

    def test_rolling_a_key(self) -> None:
        """By whom the KMS lets; nobody else."""
        with pytest.raises(KeyDeniedError):
            self.make_provider().roll_key("pii")
        admin = provider_from(self.kms.spec("admin"))
        old = admin.current_key("pii")
        local = self.make_provider().create_local_key(old)
        new = admin.roll_key("pii")
        assert new == KeyMetadata("pii", old.version + 1, KeyAlgorithm.AES_CTR_128)
        reader = self.make_provider()
        assert reader.current_key("pii") == new
        assert reader.decrypt_local_key(old, local.encrypted) == local.plain
        with pytest.raises(KeyMissingError):
            admin.roll_key("absent")

    def test_creating_a_key(self) -> None:
        """By whom the KMS lets, once."""
        with pytest.raises(KeyDeniedError):
            self.make_provider().create_key("another")
        with pytest.raises(AlreadyExistsError):
            provider_from(self.kms.spec("admin")).create_key("fin", 256)


def test_the_kms_and_its_key_store_agree(real_kms: RealKms, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master keys that the KMS keeps to itself, read from its file, unwrap the same."""
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    asked = provider_from(real_kms.spec("alice"))
    store = JceksKeyProvider(real_kms.store)
    assert list_keys(store) == list_keys(asked)
    for key in list_keys(asked):
        local = asked.create_local_key(key)
        assert store.decrypt_local_key(key, local.encrypted) == local.plain


def test_a_file_under_keys_of_the_kms(real_kms: RealKms, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "ssn": ["123", "456"], "salary": [10, 20]})
    path = tmp_path / "people.orc"
    write_table(table, str(path), encrypt="pii:ssn;fin:salary", keys=real_kms.spec("alice"))
    with EncryptedOrcFile(path, real_kms.spec("alice"), strict=True) as file:
        assert file.read().to_pylist() == table.to_pylist()
    with pytest.raises(KeyDeniedError):
        EncryptedOrcFile(path, real_kms.spec("bob"), strict=True)


def test_what_the_real_one_refuses(real_kms: RealKms) -> None:
    alice = provider_from(real_kms.spec("alice"))
    with pytest.raises(KeyMissingError):
        alice.decrypt_local_key(KeyMetadata("pii", 99, KeyAlgorithm.AES_CTR_128), bytes(16))
    with pytest.raises(WrongKeyError):
        alice.decrypt_local_key(KeyMetadata("fin", 0, KeyAlgorithm.AES_CTR_128), bytes(16))
    elsewhere = real_kms.spec("alice").replace("/kms?", "/elsewhere?")
    with pytest.raises(KeyServiceError, match="status 404"):
        provider_from(elsewhere).usable("pii")
    if real_kms.ca is not None:
        untrusted = real_kms.spec("alice").partition("&ca=")[0]
        with pytest.raises(KeyServiceError, match="certificate that is not trusted"):
            HadoopKmsKeyProvider(untrusted, limits=HttpLimits(waits=())).key_names()
