"""Delivery of events to an OpenLineage service by HTTP, with retries of temporary failures."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockgate.errors import InputError, LineageError, RecordsRefusedError
from lockgate.framework.net import (
    HttpAnswer,
    HttpClient,
    HttpLimits,
    NoAnswerError,
    UnusableAnswerError,
    address_fault,
)

# The names that OpenLineage's clients use.
URL_VARIABLE = "OPENLINEAGE_URL"
ENDPOINT_VARIABLE = "OPENLINEAGE_ENDPOINT"
KEY_VARIABLE = "OPENLINEAGE_API_KEY"
_ENDPOINT = "api/v1/lineage"

# Temporary failures, which are retried.
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
# A malformed, too large or invalid event: no retry helps.
_REFUSALS = frozenset({400, 413, 422})
_MOST_REFUSED = 100
_MOST_NAMED = 5
_SHOWN = 200
# `timeout` applies to the connection and to each read of an answer.
_READS_PER_ANSWER = 10


@dataclass(frozen=True)
class Delivery:
    """An OpenLineage service. `key` is sent as a bearer token; `waits` are the seconds between attempts."""

    url: str
    key: str | None = field(default=None, repr=False)
    waits: tuple[float, ...] = (0.5, 2.0, 8.0, 30.0)
    timeout: float = 30.0

    @classmethod
    def from_environment(cls, url: str | None = None, **values: Any) -> Delivery:
        """Return the service of `url` or of the environment; InputError if neither names one."""
        base = url or os.environ.get(URL_VARIABLE)
        if not base:
            raise InputError(f"no service is named: give its address, or set {URL_VARIABLE}")
        key = os.environ.get(KEY_VARIABLE) or None
        fault = address_fault(base, has_secret=key is not None)
        if fault is not None:
            raise InputError(f"the address of the service {fault}; a key is set by {KEY_VARIABLE}")
        endpoint = os.environ.get(ENDPOINT_VARIABLE) or _ENDPOINT
        return cls(f"{base.rstrip('/')}/{endpoint.lstrip('/')}", key, **values)

    def send(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Send events in order and return their number.

        Raises LineageError at the first event that the service could take another time, and at the end if it
        refused some for good; the error names them.
        """
        tls = ssl.create_default_context() if self.url.startswith("https:") else None
        client = HttpClient(
            [self.url],
            tls,
            HttpLimits(_READS_PER_ANSWER * self.timeout, self.timeout, waits=self.waits),
            headers=lambda host: {} if self.key is None else {"Authorization": f"Bearer {self.key}"},
        )
        sent, refused = 0, list[str]()
        for number, event in enumerate(events, 1):
            try:
                failure = client.ask("POST", "", _failure, document=event)
            except NoAnswerError as error:
                raise LineageError(f"event {number} was not accepted: {error}") from None
            except RecordsRefusedError as error:
                refused.append(f"event {number}: {error}")
                if not sent and len(refused) >= _MOST_REFUSED:
                    break  # the fault is the service's, not the events'
            else:
                if failure is not None:
                    raise LineageError(f"event {number} was not accepted: {self.url} answered with {failure}")
                sent += 1
        if refused:
            raise LineageError(
                f"{self.url} took {sent} events and refused {len(refused)} for good: "
                f"{'; '.join(refused[:_MOST_NAMED])}"
            )
        return sent


def _failure(answer: HttpAnswer) -> str | None:
    """Return the status and the beginning of the answer of a failure, None if the event was accepted."""
    text = " ".join(f"status {answer.status} {answer.body[:_SHOWN].decode('utf-8', 'replace')}".split())
    if answer.status in _REFUSALS:
        raise RecordsRefusedError(text)
    if answer.status in _TEMPORARY:
        raise UnusableAnswerError(f"answered with {text}")
    return text if answer.status >= 300 else None
