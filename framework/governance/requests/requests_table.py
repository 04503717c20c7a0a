"""The table `sys.access_requests`: the requests of its reader, and those that its reader may grant.

Lists are texts with commas, as `CALL sys.grant` takes them; no columns stand for the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockgate.errors import ProcedureError
from lockgate.framework.governance.requests.access_requests import access_requests
from lockgate.framework.store import batches_of
from lockgate.framework.types import DataField, arrow_schema, parse_type

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.plugins import WarehouseTable
    from lockgate.framework.store import Catalog

_COLUMNS = {
    "id": "STRING",
    "user": "STRING",
    "table": "STRING",
    "columns": "STRING",
    "accesses": "STRING",
    "reason": "STRING",
    "asked": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "state": "STRING",
    "decided_by": "STRING",
}


class AccessRequests:
    """Implements `lockgate.plugins.WarehouseTable`."""

    columns = tuple(
        DataField(number, name, parse_type(kind)) for number, (name, kind) in enumerate(_COLUMNS.items())
    )

    def batches(self, catalog: Catalog) -> Iterator[pa.RecordBatch]:
        """Yield the requests, oldest first; none where no policies decide."""
        yield from batches_of(arrow_schema(self.columns), _rows(catalog))


def _rows(catalog: Catalog) -> Iterator[tuple[Any, ...]]:
    try:
        requests = access_requests(catalog.warehouse)
    except ProcedureError:
        return
    for each in requests.requests():
        asked = datetime.fromtimestamp(each.asked_millis / 1000, UTC)
        columns = ",".join(each.columns) or None
        what = (each.id, each.user, each.table, columns, ",".join(each.accesses), each.reason)
        yield (*what, asked, each.state, each.decided_by)


TABLES: dict[str, WarehouseTable] = {"access_requests": AccessRequests()}
