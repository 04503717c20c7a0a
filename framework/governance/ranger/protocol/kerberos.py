"""Kerberos for Ranger's admin: SPNEGO tokens of the system's GSSAPI library (MIT's libgssapi_krb5).

Tickets come from the credential cache (`kinit`, KRB5CCNAME) or from a client's keytab (KRB5_CLIENT_KTNAME),
which the library renews. Source: RFC 2744 (GSSAPI in C), RFC 4559 (Negotiate in HTTP).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any

from lockgate.errors import OptionError, StorageError

_LIBRARY = "gssapi_krb5"
_MUTUAL = 2
_CONTINUE, _ERRORS = 1, 0xFFFF0000
_GSS_CODE, _MECHANISM_CODE = 1, 2


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", ctypes.c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("elements", ctypes.c_char_p))


_SPNEGO = _Oid(6, b"\x2b\x06\x01\x05\x05\x02")


class Negotiation:
    """The client's side of one handshake with the service `HTTP` of a host."""

    def __init__(self, host: str) -> None:
        """Begin; raises OptionError without the library, StorageError for an unusable name."""
        self._host, self._library = host, _gssapi()
        self._context = ctypes.c_void_p()
        self._name = ctypes.c_void_p()
        self._is_complete = False
        text = f"HTTP@{host}".encode()
        kind = ctypes.c_void_p.in_dll(self._library, "GSS_C_NT_HOSTBASED_SERVICE")
        self._check(
            self._library.gss_import_name,
            ctypes.byref(_Buffer(len(text), ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))),
            kind,
            ctypes.byref(self._name),
        )

    def step(self, challenge: bytes | None) -> bytes | None:
        """Return the next token for the service's last one, None if the handshake is complete.

        The first call has no challenge. Raises StorageError without a ticket, or for a service that cannot
        prove its identity.
        """
        if self._is_complete:
            return None
        incoming = _Buffer(0, None)
        if challenge is not None:
            incoming = _Buffer(len(challenge), ctypes.cast(ctypes.c_char_p(challenge), ctypes.c_void_p))
        outgoing = _Buffer(0, None)
        try:
            status = self._check(
                self._library.gss_init_sec_context,
                None,
                ctypes.byref(self._context),
                self._name,
                ctypes.byref(_SPNEGO),
                ctypes.c_uint32(_MUTUAL),
                ctypes.c_uint32(0),
                None,
                ctypes.byref(incoming),
                None,
                ctypes.byref(outgoing),
                None,
                None,
            )
            self._is_complete = status != _CONTINUE
            return ctypes.string_at(outgoing.value, outgoing.length) if outgoing.length else None
        finally:
            self._library.gss_release_buffer(ctypes.byref(ctypes.c_uint32()), ctypes.byref(outgoing))

    def _check(self, function: Any, *arguments: Any) -> int:
        minor = ctypes.c_uint32()
        status = int(function(ctypes.byref(minor), *arguments))
        if status & _ERRORS:
            why = self._words(minor.value, _MECHANISM_CODE) or self._words(status, _GSS_CODE)
            raise StorageError(
                f"no Kerberos for HTTP@{self._host}: {why}; run kinit, or set KRB5_CLIENT_KTNAME"
            )
        return status

    def _words(self, status: int, kind: int) -> str:
        text = _Buffer(0, None)
        minor, more = ctypes.c_uint32(), ctypes.c_uint32()
        self._library.gss_display_status(
            ctypes.byref(minor),
            ctypes.c_uint32(status),
            ctypes.c_int(kind),
            None,
            ctypes.byref(more),
            ctypes.byref(text),
        )
        try:
            return ctypes.string_at(text.value, text.length).decode(errors="replace") if text.length else ""
        finally:
            self._library.gss_release_buffer(ctypes.byref(minor), ctypes.byref(text))

    def close(self) -> None:
        """Free what the library holds."""
        minor = ctypes.c_uint32()
        if self._context:
            self._library.gss_delete_sec_context(ctypes.byref(minor), ctypes.byref(self._context), None)
        if self._name:
            self._library.gss_release_name(ctypes.byref(minor), ctypes.byref(self._name))


@cache
def _gssapi() -> ctypes.CDLL:
    path = ctypes.util.find_library(_LIBRARY) or f"lib{_LIBRARY}.so.2"
    try:
        library = ctypes.CDLL(path)
    except OSError:
        raise OptionError(
            "Kerberos needs MIT's GSSAPI library, which is not installed; run: apt-get install "
            "libgssapi-krb5-2"
        ) from None
    for name in ("gss_import_name", "gss_init_sec_context", "gss_display_status"):
        getattr(library, name).restype = ctypes.c_uint32
    return library
