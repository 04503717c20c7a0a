"""Passwords of key stores from Hadoop's credential files, as Ranger's plugins find them.

Source: org.apache.hadoop.security.alias.JavaKeyStoreProvider. A file is a JCEKS key store with a secret key
for each alias, whose bytes are the password. Its own password is in HADOOP_CREDSTORE_PASSWORD, else `none`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from lockgate.errors import OptionError, nearest
from lockgate.framework.governance.ranger.protocol.key_stores import LARGEST, java_stores

PASSWORD_VARIABLE = "HADOOP_CREDSTORE_PASSWORD"  # noqa: S105 - Hadoop's public names and default, no secret
_DEFAULT_PASSWORD = "none"  # noqa: S105 - Hadoop's public names and default, no secret
_FILE = re.compile(r"(?:(?:local)?jceks://file)?(/.*)")


def credential(url: str, alias: str) -> str:
    """Return the password with an alias (in any case, as in Java) in `jceks://file/path`.

    Raises OptionError, which never has a password, for files that are absent, damaged or have no such alias.
    """
    match = _FILE.fullmatch(url.strip())
    if match is None:
        raise OptionError(
            f"{url} is not the address of a local credential file: write it as jceks://file/path.jceks"
        )
    path = Path(match[1])
    entries = _entries(path)
    found = entries.get(alias.lower())
    if found is None:
        raise OptionError(
            f"{path} has no alias {alias!r}{nearest(alias.lower(), sorted(entries))}: run hadoop credential "
            f"create {alias} -provider jceks://file{path}"
        )
    return found


def _entries(path: Path) -> dict[str, str]:
    jks = java_stores()
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST)
    except OSError as error:
        raise OptionError(f"the credential file {path} cannot be read: {error.strerror}") from None
    password = os.environ.get(PASSWORD_VARIABLE) or _DEFAULT_PASSWORD
    try:
        store = jks.KeyStore.loads(content, password)
        return {alias.lower(): bytes(each.key).decode() for alias, each in store.secret_keys.items()}
    except jks.util.KeystoreSignatureException:
        raise OptionError(
            f"the credential file {path} does not open with the password in {PASSWORD_VARIABLE} (default: "
            "none), or is damaged"
        ) from None
    except Exception as error:  # pyjks lets through whatever its parsers of Java's formats raise.
        raise OptionError(
            f"{path} is not a credential file, or is damaged ({type(error).__name__})"
        ) from None
