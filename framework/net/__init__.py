"""HTTP: the one client of services, for keys, policies, audit and lineage."""

from __future__ import annotations

from lockgate.framework.net.http_client import (
    Authentication,
    Handshake,
    HttpAnswer,
    HttpClient,
    HttpLimits,
    NoAnswerError,
    UnusableAnswerError,
    basic_authorization,
)

__all__ = [
    "Authentication",
    "Handshake",
    "HttpAnswer",
    "HttpClient",
    "HttpLimits",
    "NoAnswerError",
    "UnusableAnswerError",
    "basic_authorization",
]
