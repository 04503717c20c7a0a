"""Policies of Ranger's admin by the confs of a catalog, for sessions that no Python program configures.

A conf is Ranger's option behind `spark.sql.catalog.<name>.`. Only confs that the application started with
count: a session's SET changes nothing. Passwords are refused here, since sessions can read confs.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from lockgate.errors import OptionError, nearest
from lockgate.framework.governance.audit.log import AuditLog
from lockgate.framework.governance.authorizer import RangerAuthorizer
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings, read_xml
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
from lockgate.framework.governance.requests.folder import RequestFolder
from lockgate.framework.io import resolve
from lockgate.framework.options import Option
from lockgate.framework.plugins import plugins

_CATALOG = "spark.sql.catalog."
_POLICIES, _AUDIT, _TLS = "ranger.plugin.paimon.", "xasecure.audit.", "xasecure.policymgr.clientssl."
FILES = f"{_POLICIES}config.files"
_OTHERS, _APPLY, _REQUESTS = f"{_POLICIES}governs.others", f"{_POLICIES}apply.at", f"{_POLICIES}requests.dir"
_DESTINATION = f"{_AUDIT}destination."
# Each option with its description.
_OPTIONS = {
    FILES: "XML files of a Ranger plugin, with commas; other options go first",
    _OTHERS: "whether the policies also decide about files and other catalogs: `true` (default) or `false`",
    _APPLY: "where refusals tell users to apply for access",
    _REQUESTS: "the folder that keeps requests for access",
    f"{_POLICIES}service.name": "the service in Ranger",
    f"{_POLICIES}policy.rest.url": "addresses of the admin, with commas",
    f"{_POLICIES}policy.cache.dir": "the folder that keeps the last download",
    f"{_POLICIES}policy.pollIntervalMs": "the time between two downloads, 30000",
    f"{_POLICIES}policy.maxAgeMs": "the oldest policies to use; no limit by default",
    f"{_POLICIES}policy.rest.client.username": "the user of basic authentication; the password is in a file",
    f"{_POLICIES}policy.rest.client.authentication": "`kerberos`, or `basic` (default)",
    f"{_POLICIES}policy.rest.client.connection.timeoutMs": "the time limit of the admin, 30000",
    f"{_POLICIES}policy.rest.ssl.config.file": "an XML file with the key stores",
    f"{_POLICIES}access.cluster.name": "the name of the cluster, for conditions",
    f"{_TLS}truststore": "the certificates to trust",
    f"{_TLS}truststore.type": "the type of the trust store",
    f"{_TLS}truststore.credential.file": "the credential file with the trust store's password",
    f"{_TLS}keystore": "this client's certificate and private key",
    f"{_TLS}keystore.type": "the type of the key store",
    f"{_TLS}keystore.credential.file": "the credential file with the key store's password",
    f"{_AUDIT}is.enabled": "whether decisions are recorded, true",
    f"{_DESTINATION}file": "whether records go to a file",
    f"{_DESTINATION}file.dir": "the folder of that file",
    f"{_DESTINATION}hdfs": "whether records go to HDFS or an object store",
    f"{_DESTINATION}hdfs.dir": "the address of a folder there",
    f"{_DESTINATION}hdfs.batch.filespool.dir": "the folder for records that it has not taken yet",
    f"{_DESTINATION}solr": "whether records go to Solr",
    f"{_DESTINATION}solr.urls": "addresses of a collection of Solr, with commas",
    f"{_DESTINATION}solr.batch.filespool.dir": "the folder for records that it has not taken yet",
}
DECLARED = tuple(Option(key, str, "", doc) for key, doc in _OPTIONS.items())
_lock = threading.Lock()
_registered: dict[str, tuple[Mapping[str, str], AdminPolicies, AuditLog]] = {}


def register_policies(confs: Mapping[str, str]) -> None:
    """Register an authorizer for each catalog of an application whose confs name a service in Ranger.

    The same confs change nothing; others replace what an earlier application of this process had. Raises
    OptionError for unusable ones.
    """
    wanted = {name: each for name, each in _by_catalog(confs).items() if any(map(_is_ours, each))}
    with _lock:
        for name in [each for each in _registered if _registered[each][0] != wanted.get(each)]:
            _, policies, audit = _registered.pop(name)
            plugins().unregister(_plugin(name))
            policies.close()
            audit.close()
        for name, options in wanted.items():
            if name not in _registered:
                policies, audit, authorizer = _authorizer(name, options)
                plugins().register(authorizer, _plugin(name), origin=f"the confs of catalog {name!r}")
                _registered[name] = options, policies, audit


def _authorizer(name: str, options: Mapping[str, str]) -> tuple[AdminPolicies, AuditLog, RangerAuthorizer]:
    for key in options:
        if key.endswith("password"):
            raise OptionError(
                f"{_CATALOG}{name}.{key} would show a password to sessions: put it into a file that only the "
                f"server's user can read, and name that by {_CATALOG}{name}.{FILES}"
            )
        if _is_ours(key) and key not in _OPTIONS:
            raise OptionError(f"{_CATALOG}{name}.{key} is no option of policies{nearest(key, _OPTIONS)}")
    files = [each.strip() for each in options.get(FILES, "").split(",") if each.strip()]
    found = {**read_xml(files), **{key: value for key, value in options.items() if _is_ours(key)}}
    others = options.get(_OTHERS, "true").lower()
    if others not in ("true", "false"):
        raise OptionError(f"{_CATALOG}{name}.{_OTHERS} must be true or false")
    settings = AdminSettings.from_options(found)
    audit = AuditLog.from_options(found, service=settings.service)
    rest: dict[str, Any] = {}
    if options.get(_REQUESTS):
        rest["requests"] = RequestFolder(options[_REQUESTS])
    policies = AdminPolicies(settings)
    return (
        policies,
        audit,
        RangerAuthorizer(
            policies,
            catalog=name,
            warehouse=_warehouse(name, options),
            governs_others=others == "true",
            apply_at=options.get(_APPLY),
            audit=audit,
            **rest,
        ),
    )


def _warehouse(name: str, options: Mapping[str, str]) -> str:
    address = options.get("warehouse")
    if not address:
        raise OptionError(f"catalog {name!r} has no warehouse: set {_CATALOG}{name}.warehouse")
    return resolve(address, {key: value for key, value in options.items() if key.startswith("fs.")})[1]


def _by_catalog(confs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, value in confs.items():
        if key.startswith(_CATALOG):
            name, dot, option = key.removeprefix(_CATALOG).partition(".")
            if dot:
                found.setdefault(name, {})[option] = value
    return found


def _is_ours(key: str) -> bool:
    return key.startswith((_POLICIES, _AUDIT, _TLS))


def _plugin(name: str) -> str:
    return f"policies of catalog {name}"
