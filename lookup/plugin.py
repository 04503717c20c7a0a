"""What lookup adds to Lockgate: its options, and the table `t$pin` that tells a batch which snapshot to use."""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.framework.plugins import SystemTable, hookimpl
from lockgate.lookup.options import register

register()


@hookimpl
def lockgate_system_tables() -> Mapping[str, SystemTable]:
    """Offer `lake.db.t$pin`."""
    from lockgate.lookup.pin import PinTable

    return {"pin": PinTable()}
