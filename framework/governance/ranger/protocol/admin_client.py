"""The client of Ranger's admin: one GET per download, which names the version at hand.

Source: Ranger's RangerAdminRESTClient. Status 304 and 204 mean unchanged, 404 that there is no service.
"""

from __future__ import annotations

import http
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.net import HttpAnswer, NoAnswerError, UnusableAnswerError

_EXCERPT = 1 << 16
_GONE = b"RANGER_ERROR_SERVICE_NOT_FOUND"
# The abilities of Ranger's own plugin: deltas, tags, zones, roles and the like, a bit each.
_CAPABILITIES = "1ffff"


class Content(StrEnum):
    """What there is to download; the value names its file in the cache."""

    POLICIES = "policies"
    ROLES = "roles"
    TAGS = "tags"
    USERS = "users"


@dataclass(frozen=True)
class _Route:
    """The paths of one kind of download, the field that has its version, and the parameter for it."""

    plain: str
    secure: str
    version: str
    parameter: str = "lastKnownVersion"
    deltas: str | None = None


_ROUTES = {
    Content.POLICIES: _Route(
        "/service/plugins/policies/download/",
        "/service/plugins/secure/policies/download/",
        "policyVersion",
        deltas="supportsPolicyDeltas",
    ),
    Content.ROLES: _Route(
        "/service/roles/download/", "/service/roles/secure/download/", "roleVersion", "lastKnownRoleVersion"
    ),
    Content.TAGS: _Route(
        "/service/tags/download/", "/service/tags/secure/download/", "tagVersion", deltas="supportsTagDeltas"
    ),
    Content.USERS: _Route(
        "/service/xusers/download/",
        "/service/xusers/secure/download/",
        "userStoreVersion",
        "lastKnownUserStoreVersion",
    ),
}


@dataclass(frozen=True)
class Download:
    """Outcome of a download: a content, nothing new (`document` is None), or a service that is not there."""

    document: dict[str, Any] | None = None
    is_gone: bool = False


def version_of(content: Content, document: dict[str, Any] | None) -> int:
    """Return the version of a download, -1 for none."""
    version = (document or {}).get(_ROUTES[content].version)
    return -1 if version is None else int(version)


class AdminClient:
    """Asks the admins in turn, the one that answered last first; may be used from several threads."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings, self._admins = settings, settings.client()

    def download(self, content: Content, known_version: int = -1, activated: float = 0) -> Download:
        """Return what is new; raises AdminError if no admin answers as it should."""
        route, settings = _ROUTES[content], self._settings
        path = route.secure if settings.is_secured else route.plain
        parameters = {
            route.parameter: str(known_version),
            "lastActivationTime": str(int(activated * 1000)),
            "pluginId": _plugin_id(settings),
            "clusterName": settings.cluster,
            "pluginCapabilities": _CAPABILITIES,
            **({route.deltas: "true"} if route.deltas else {}),
        }
        service = urllib.parse.quote(settings.service, safe="")
        try:
            return self._admins.ask("GET", path + service, _meaning, parameters=parameters)
        except NoAnswerError as error:
            raise AdminError(f"no {content} from Ranger's admin: {error}") from error

    def change(self, word: str, document: Mapping[str, Any]) -> None:
        """Have a grant made (`grant`) or taken back (`revoke`); raises AdminError if the admin refuses.

        One admin is asked, the first that can be reached: another might do again what this one has done.
        """
        secure = "secure/" if self._settings.is_secured else ""
        service = urllib.parse.quote(self._settings.service, safe="")
        path = f"/service/plugins/{secure}services/{word}/{service}"
        named = {"pluginId": _plugin_id(self._settings)}
        try:
            answer = self._admins.ask(
                "POST", path, as_it_is, parameters=named, document=document, repeatable=False
            )
        except NoAnswerError as error:
            raise AdminError(f"no {word} by Ranger's admin: {error}") from error
        if answer.status != http.HTTPStatus.OK:
            refused = answer.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)
            what = "refuses it" if refused else f"answers with status {answer.status}"
            raise AdminError(f"Ranger's admin {what}: {word} for {document['grantor']!r}")


def _plugin_id(settings: AdminSettings) -> str:
    """Return the name of this client in the admin's list of plugins (RangerRESTUtils.getPluginId)."""
    return f"{settings.app_id}@{socket.gethostname()}-{settings.service}"


def as_it_is(answer: HttpAnswer) -> HttpAnswer:
    """Return an answer, whatever its status."""
    return answer


def _meaning(answer: HttpAnswer) -> Download:
    """Return what an answer means."""
    if answer.status in (http.HTTPStatus.NOT_MODIFIED, http.HTTPStatus.NO_CONTENT):
        return Download()
    # A proxy also answers 404, and Ranger's own client looks for the same words.
    if answer.status == http.HTTPStatus.NOT_FOUND and _GONE in answer.body[:_EXCERPT].upper():
        return Download(is_gone=True)
    if answer.status != http.HTTPStatus.OK:
        raise UnusableAnswerError(f"answered with status {answer.status}")
    document = answer.document()
    if not isinstance(document, dict):
        raise UnusableAnswerError("gave an answer that is not a JSON object")
    return Download(document)
