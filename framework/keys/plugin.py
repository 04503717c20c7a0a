"""The key providers that come with Lockgate beside key files, as a plugin."""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.framework.keys.envelope import envelope_provider
from lockgate.framework.keys.hadoop_kms import hadoop_kms_provider
from lockgate.framework.keys.jceks import jceks_provider
from lockgate.framework.plugins import hookimpl
from lockgate.framework.plugins.contracts import KeyProviderFactory


@hookimpl
def lockgate_key_providers() -> Mapping[str, KeyProviderFactory]:
    """Return the factories of `jceks:`, `kms:` and `envelope:`."""
    return {"jceks": jceks_provider, "kms": hadoop_kms_provider, "envelope": envelope_provider}
