"""The system table `t$pin`: one row, the snapshot that a lookup on `t` answers this batch from.

Spark plans a scan of it once for each micro-batch, which is the one moment when the driver can choose for
all of the batch's tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import InputError, LookupCacheError
from lockgate.framework.types import BIGINT, DataField
from lockgate.lookup.spec import LookupSpec, cache_id

if TYPE_CHECKING:
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.store.table import Table

# The read option that carries the lookup's spec.
SPEC_OPTION = "lookup.spec"
# The read option that carries the id of the cache which the workers were told to ask.
CACHE_OPTION = "lookup.cache-id"
SNAPSHOT_COLUMN = "snapshot_id"


class PinTable:
    """Implements `lockgate.framework.plugins.SystemTable`."""

    def schema(self, context: BridgeContext, table: Table) -> list[DataField]:
        """One column, the snapshot's id."""
        return [DataField(0, SNAPSHOT_COLUMN, BIGINT)]

    def rows(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Choose the batch's snapshot, waiting until it is cached; raises as `service.Lookup.pin` does.

        Raises LookupCacheError if the dimension is another one than the join was planned with.
        """
        from lockgate.lookup.running import lookup_for

        if SPEC_OPTION not in options:
            raise InputError(f"{table.identifier}$pin is read by lookup joins only")
        spec = LookupSpec.from_json(json.loads(options[SPEC_OPTION]))
        planned = options.get(CACHE_OPTION)
        if planned is not None and planned != cache_id(table, spec):
            # The workers ask the cache of then, where a snapshot of this number may be another state.
            raise LookupCacheError(
                f"the lookup on {table.identifier} was planned with another table, other columns or other "
                "keys: it was dropped and created again, altered, or the keys held have changed; start the "
                "query again"
            )
        lookup = lookup_for(context.catalog(context.request["catalog"]), table, spec)
        batch = properties.get("batch_id")
        snapshot_id = lookup.pin(properties.get("query_id"), None if batch is None else int(batch))
        return pa.table({SNAPSHOT_COLUMN: pa.array([snapshot_id], pa.int64())})
