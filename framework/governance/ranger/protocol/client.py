"""The client of Ranger's admin: one GET per download, which names the version at hand.

Source: Ranger's RangerAdminRESTClient. Status 304 and 204 mean unchanged, 404 that there is no service.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lockgate.errors import StorageError
from lockgate.framework.governance.ranger.protocol.settings import AdminSettings

LARGEST_ANSWER = 1 << 30
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


class AdminError(StorageError):
    """Raised when Ranger's admin does not answer, or not as it should."""


def version_of(content: Content, document: dict[str, Any] | None) -> int:
    """Return the version of a download, -1 for none."""
    version = (document or {}).get(_ROUTES[content].version)
    return -1 if version is None else int(version)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead a password elsewhere."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


class AdminClient:
    """Asks the admins in turn, the one that answered last first; may be used from several threads."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings, self._first, self._lock = settings, 0, threading.Lock()
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.ProxyHandler({}),
            _NoRedirects(),
            urllib.request.HTTPCookieProcessor(),
        ]
        tls = settings.tls()
        if tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=tls))
        self._opener = urllib.request.build_opener(*handlers)

    def download(self, content: Content, known_version: int = -1, activated: float = 0) -> Download:
        """Return what is new; raises AdminError if no admin answers as it should."""
        failures = []
        for turn in range(len(self._settings.urls)):
            index = (self._first + turn) % len(self._settings.urls)
            url = self._settings.urls[index]
            try:
                found = self._ask(url, content, known_version, activated)
            except (OSError, ValueError, http.client.HTTPException) as error:
                failures.append(f"{url}: {_reason(error)}")
                continue
            with self._lock:
                self._first = index
            return found
        raise AdminError(f"no {content} from Ranger's admin: {'; '.join(failures)}")

    def change(self, word: str, document: Mapping[str, Any]) -> None:
        """Have a grant made (`grant`) or taken back (`revoke`); raises AdminError if the admin refuses.

        One admin is asked, the one that answered last: another might do again what this one has done.
        """
        secure = "secure/" if self._settings.user is not None else ""
        service = urllib.parse.quote(self._settings.service, safe="")
        url = f"{self._settings.urls[self._first]}/service/plugins/{secure}services/{word}/{service}"
        request = self._request(f"{url}?pluginId={urllib.parse.quote(self._settings.app_id)}")
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(document).encode()
        try:
            with self._opener.open(request, timeout=self._settings.timeout_seconds) as answer:
                answer.read(1 << 16)
        except urllib.error.HTTPError as error:
            refused = error.code in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)
            what = "refuses it" if refused else f"answers with status {error.code}"
            raise AdminError(f"Ranger's admin {what}: {word} for {document['grantor']!r}") from error
        except (OSError, http.client.HTTPException) as error:
            raise AdminError(f"no {word} by Ranger's admin: {_reason(error)}") from error

    def _request(self, url: str) -> urllib.request.Request:
        request = urllib.request.Request(url)
        request.add_header("Accept", "application/json")
        if self._settings.user is not None:
            credentials = f"{self._settings.user}:{self._settings.password or ''}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(credentials).decode()}")
        return request

    def _ask(self, url: str, content: Content, known_version: int, activated: float) -> Download:
        request = self._request(self._address(url, content, known_version, activated))
        try:
            with self._opener.open(request, timeout=self._settings.timeout_seconds) as answer:
                if answer.status == http.HTTPStatus.NO_CONTENT:
                    return Download()
                return Download(_parsed(answer.read(LARGEST_ANSWER + 1)))
        except urllib.error.HTTPError as error:
            return _of_status(error)

    def _address(self, url: str, content: Content, known_version: int, activated: float) -> str:
        route, settings = _ROUTES[content], self._settings
        path = route.secure if settings.user is not None else route.plain
        asked = {
            route.parameter: str(known_version),
            "lastActivationTime": str(int(activated * 1000)),
            "pluginId": f"{settings.app_id}@{settings.service}",
            "clusterName": "",
            "pluginCapabilities": _CAPABILITIES,
            **({route.deltas: "true"} if route.deltas else {}),
        }
        service = urllib.parse.quote(settings.service, safe="")
        return f"{url}{path}{service}?{urllib.parse.urlencode(asked)}"


def _parsed(body: bytes) -> dict[str, Any]:
    if len(body) > LARGEST_ANSWER:
        raise ValueError("the answer is too long")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the answer is not a JSON object")
    return document


def _of_status(error: urllib.error.HTTPError) -> Download:
    """Return what a status other than 200 means; raises OSError for one that means a failure."""
    if error.code == http.HTTPStatus.NOT_MODIFIED:
        return Download()
    # A proxy also answers 404: only the admin says of what.
    if error.code == http.HTTPStatus.NOT_FOUND and b"service" in error.read(1 << 16).lower():
        return Download(is_gone=True)
    raise OSError(f"status {error.code}")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, OSError) else type(error).__name__
