"""Lockgate's own key providers other than key files, as a plugin."""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.framework.keys.provider import KeyProvider
from lockgate.framework.plugins import KeyProviderFactory, hookimpl


@hookimpl
def lockgate_key_providers() -> Mapping[str, KeyProviderFactory]:
    """Return the factories of `jceks:`, `kms:` and `envelope:`."""
    return {"jceks": _jceks, "kms": _kms, "envelope": _envelope}


# Each scheme imports its libraries on first use.


def _jceks(text: str) -> KeyProvider:
    from lockgate.framework.keys.hadoop.jceks import jceks_provider

    return jceks_provider(text)


def _kms(text: str) -> KeyProvider:
    from lockgate.framework.keys.hadoop.hadoop_kms import hadoop_kms_provider

    return hadoop_kms_provider(text)


def _envelope(text: str) -> KeyProvider:
    from lockgate.framework.keys.envelopes.envelope import envelope_provider

    return envelope_provider(text)
