"""Kerberos with a real key distribution centre (Apache Kerby, by Maven) and a service by Java's GSSAPI.

Needs mvn, Java and MIT's GSSAPI library; the jars come by Maven the first time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors import free_port
from ranger_world import allow, service

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "kerberos" / "KdcReferee.java"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>kdc-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kerby</groupId><artifactId>kerb-simplekdc</artifactId><version>2.0.3</version>
</dependency></dependencies></project>"""
CONF = """[libdefaults]
default_realm = LAKE.EXAMPLE
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
LAKE.EXAMPLE = {{
  kdc = localhost:{port}
}}
"""
# In a process of its own: the library reads its environment once.
CLIENT = """
import sys
from pathlib import Path
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
prefix = "ranger.plugin.paimon."
settings = AdminSettings.from_options({
    f"{prefix}service.name": "lake",
    f"{prefix}policy.rest.url": sys.argv[1],
    f"{prefix}policy.cache.dir": sys.argv[2],
    f"{prefix}policy.rest.client.authentication": "kerberos",
})
found = AdminPolicies(settings, poll=False)
found.refresh()
print(found.version)
"""


class Centre:
    """A key distribution centre and a service, in one process of Java."""

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, free_port()
        (folder / "pom.xml").write_text(POM)
        fetch = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
        done = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, timeout=500)
        if done.returncode:
            pytest.skip(f"Maven could not fetch the key distribution centre: {done.stdout[-300:]}")
        jars = (folder / "classpath").read_text().strip()
        subprocess.run(["javac", "-cp", jars, "-d", str(folder), str(SOURCE)], check=True, timeout=200)
        (folder / "krb5.conf").write_text(CONF.format(port=port))
        self._log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            [
                "java",
                f"-Djava.security.krb5.conf={folder}/krb5.conf",
                "-cp",
                f"{folder}:{jars}",
                "KdcReferee",
                str(folder),
                str(port),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        while said and not said.strip().isdigit():
            said = self.process.stdout.readline()
        assert said, (folder / "log").read_text()[-3000:]
        (folder / "krb5.conf").write_text(CONF.format(port=port))
        self.url = f"http://localhost:{said.strip()}"

    def refresh(self, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Download policies as a client with an environment."""
        return subprocess.run(
            [sys.executable, "-c", CLIENT, self.url, str(cache)],
            env={
                **os.environ,
                "KRB5_CONFIG": f"{self.folder}/krb5.conf",
                "KRB5CCNAME": f"FILE:{cache.parent}/tickets",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=100,
        )

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait(30)
        self._log.close()


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Centre]:
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        pytest.skip("mvn and javac are needed for the key distribution centre")
    folder = tmp_path_factory.mktemp("centre")
    (folder / "answer.json").write_text(json.dumps(service(allow("lake.db.t.*"), policyVersion=7)))
    found = Centre(folder)
    yield found
    found.close()


def test_a_keytab_gets_policies(centre: Centre, tmp_path: Path) -> None:
    keytab = f"{centre.folder}/client.keytab"
    done = centre.refresh(tmp_path / "cache", KRB5_CLIENT_KTNAME=keytab)
    assert (done.stdout, done.returncode) == ("7\n", 0), done.stderr[-2000:]
    assert centre.process.stdout is not None
    assert centre.process.stdout.readline().strip() == "lock@LAKE.EXAMPLE"


def test_without_a_ticket_nothing_is_sent(centre: Centre, tmp_path: Path) -> None:
    done = centre.refresh(tmp_path / "cache", KRB5_CLIENT_KTNAME=f"{tmp_path}/absent")
    assert done.returncode != 0
    assert "no Kerberos for HTTP@localhost" in done.stderr, done.stderr[-2000:]
