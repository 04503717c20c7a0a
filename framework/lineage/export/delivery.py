"""Delivery of events to an OpenLineage service by HTTP, with retries if they can help."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockgate.errors import InputError, LineageError, RecordsRefusedError

# As OpenLineage's own clients call them.
URL_VARIABLE = "OPENLINEAGE_URL"
ENDPOINT_VARIABLE = "OPENLINEAGE_ENDPOINT"
KEY_VARIABLE = "OPENLINEAGE_API_KEY"
_ENDPOINT = "api/v1/lineage"

# A service that is busy or away for a moment: worth another try.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
# An event of a bad form, one that is too large, one with bad values: no later try changes that.
_REFUSALS = frozenset({400, 413, 422})
_MOST_REFUSED = 100
_MOST_NAMED = 5
_LONGEST_WAIT = 60.0
_SHOWN = 200


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead a key elsewhere."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


@dataclass(frozen=True)
class Delivery:
    """A place to send events to. `key` is sent as a bearer token; `waits` are seconds between tries."""

    url: str
    key: str | None = field(default=None, repr=False)
    waits: tuple[float, ...] = (0.5, 2.0, 8.0, 30.0)
    timeout: float = 30.0

    @classmethod
    def from_environment(cls, url: str | None = None, **values: Any) -> Delivery:
        """Return the place that `url` or the environment names; InputError if neither does."""
        base = url or os.environ.get(URL_VARIABLE)
        if not base:
            raise InputError(f"no service is named: give its address, or set {URL_VARIABLE}")
        parts = urllib.parse.urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address of the service is not an http:// or https:// address")
        if parts.username or parts.password:
            raise InputError(f"the address of the service holds a password: set {KEY_VARIABLE} instead")
        key = os.environ.get(KEY_VARIABLE) or None
        if key and parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise InputError(f"{KEY_VARIABLE} would travel in the clear: give an https:// address")
        endpoint = os.environ.get(ENDPOINT_VARIABLE) or _ENDPOINT
        return cls(f"{base.rstrip('/')}/{endpoint.lstrip('/')}", key, **values)

    def send(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Send events in order and return their number.

        Raises LineageError at the first event that the service could take another time, and at the end if it
        refused some for good; the error names them.
        """
        opener = urllib.request.build_opener(_NoRedirects())
        sent, refused = 0, list[str]()
        for number, event in enumerate(events, 1):
            try:
                self._send_one(opener, event, number)
            except RecordsRefusedError as error:
                refused.append(str(error))
                if not sent and len(refused) >= _MOST_REFUSED:
                    break  # the service is wrong, not they
            else:
                sent += 1
        if refused:
            raise LineageError(
                f"{self.url} took {sent} events and refused {len(refused)} for good: "
                f"{'; '.join(refused[:_MOST_NAMED])}"
            )
        return sent

    def _send_one(self, opener: urllib.request.OpenerDirector, event: Mapping[str, Any], number: int) -> None:
        request = urllib.request.Request(self.url, json.dumps(event).encode(), self._headers(), method="POST")  # noqa: S310 - http or https: checked above
        for wait in (*self.waits, None):
            try:
                with opener.open(request, timeout=self.timeout) as reply:
                    reply.read()
                return
            except urllib.error.HTTPError as error:
                with error:
                    passes, reason = error.code in _PASSING, _reason(error)
                    asked = _seconds(error.headers.get("Retry-After"))
                if error.code in _REFUSALS:
                    raise RecordsRefusedError(f"event {number}: {reason}") from None
            except (OSError, http.client.HTTPException) as error:
                passes, reason, asked = True, f"{type(error).__name__}: {error}", None
            if wait is None or not passes:
                raise LineageError(f"{self.url} did not accept event {number}: {reason}")
            time.sleep(wait if asked is None else min(max(asked, wait), _LONGEST_WAIT))

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        return headers if self.key is None else {**headers, "Authorization": f"Bearer {self.key}"}


def _reason(error: urllib.error.HTTPError) -> str:
    """Return the status and the beginning of what the service says."""
    text = error.read(_SHOWN).decode("utf-8", "replace")
    return " ".join(f"status {error.code} {error.reason} {text}".split())


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:  # a date; our own wait will do
        return None
