"""Addresses of HTTP services: what may stand in one, and where a secret may go."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def address_fault(url: str, *, has_secret: bool) -> str | None:
    """Return what is wrong with an address, without the address: it may hold a password; None if it is right.

    `has_secret`: requests carry a password or key, for which only TLS, or this host, will do.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        return "is not an address: write it as https://host:port"
    if parts.username is not None or parts.password is not None:
        return "holds a user or password: give them by options of their own"
    if has_secret and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return "would carry a secret in the clear: write https://"
    return None


def is_loopback(host: str) -> bool:
    """Return whether a host's name or number is this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
