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
from lockgate.framework.net.service_addresses import address_fault, is_loopback

__all__ = [
    "Authentication",
    "Handshake",
    "HttpAnswer",
    "HttpClient",
    "HttpLimits",
    "NoAnswerError",
    "UnusableAnswerError",
    "address_fault",
    "basic_authorization",
    "is_loopback",
]
