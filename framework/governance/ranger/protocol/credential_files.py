"""Passwords of key stores from Hadoop's credential files, as Ranger's plugins find them.

Source: org.apache.hadoop.security.alias.JavaKeyStoreProvider. A file is a JCEKS key store with a secret key
for each alias, whose bytes are the password. Its own password is in HADOOP_CREDSTORE_PASSWORD, else `none`.
"""

from __future__ import annotations

import os
import re

from lockgate.errors import OptionError, nearest
from lockgate.framework.io import JavaKeyStore, KeyStoreError, read_key_store

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
    path, password = match[1], os.environ.get(PASSWORD_VARIABLE) or _DEFAULT_PASSWORD
    try:
        name = f"the password in {PASSWORD_VARIABLE} (default: none)"
        store = JavaKeyStore(path, read_key_store(path), password, name)
        aliases = {each.lower(): each for each in store.secret_key_aliases()}
        if alias.lower() in aliases:
            return store.secret_key(aliases[alias.lower()], password).decode()
    except KeyStoreError as error:
        raise OptionError(f"the credential file is not usable: {error}") from None
    except UnicodeDecodeError:
        raise OptionError(f"the credential file {path} has no text for alias {alias!r}") from None
    raise OptionError(
        f"{path} has no alias {alias!r}{nearest(alias.lower(), sorted(aliases))}: run hadoop credential "
        f"create {alias} -provider jceks://file{path}"
    )
