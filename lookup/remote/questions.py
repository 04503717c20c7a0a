"""The questions to a query service, as Arrow Flight carries them.

A question is one exchange. Its descriptor says which lookup it is of; each batch has the key columns, with a
`SnapshotJson` as its metadata. The answer has a batch for each: the encoded rows of `row_codec`, empty where
there is none, in the order of the keys, with the snapshot that they are of; or an error and no row.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.spark import FailureJson, fault_in, shape_of
from lockgate.lookup.spec.lookup_options import SCAN_PARTITIONS, lookup_options
from lockgate.lookup.spec.lookup_spec import LookupSpec, layout_of
from lockgate.lookup.spec.planned_schema import planned_table

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.lookup.spec.lookup_spec import CacheLayout

ANSWER_SCHEMA = pa.schema([("row", pa.large_binary())])
HEADER = "authorization"


class LookupJson(TypedDict):
    """A lookup: the ids of the table and of the schema that it was planned with, what is asked of it, and the
    digest of the layout of keys and rows.
    """

    table: str
    schema: int
    keys: list[str]
    columns: list[str]
    where: Any
    partitions: str
    layout: str


class SnapshotJson(TypedDict):
    """The snapshot that keys are asked of, or rows are of; the fingerprint tells it from others of its
    number.
    """

    snapshot: int
    fingerprint: str


_LOOKUP = shape_of(LookupJson)
_SNAPSHOT = shape_of(SnapshotJson)
_ANSWER = {"either": [_SNAPSHOT, shape_of(FailureJson)]}


@dataclass(frozen=True)
class AskedLookup:
    """A lookup that was asked for, read from a descriptor."""

    table_id: str
    schema_id: int
    spec: LookupSpec
    layout_digest: str


def descriptor_of(table: Table, spec: LookupSpec, layout: CacheLayout) -> bytes:
    """Describe a lookup to the service."""
    options = {**table.options, **spec.options}
    content: LookupJson = {
        "table": table.table_id,
        "schema": table.schema.id,
        "keys": list(spec.keys),
        "columns": list(spec.columns),
        "where": spec.to_json()["where"],
        "partitions": str(options.get(SCAN_PARTITIONS.key, "")),
        "layout": digest_of(layout),
    }
    return json.dumps(content, sort_keys=True).encode()


def digest_of(layout: CacheLayout) -> str:
    """Return a fingerprint of the key and row encoding."""
    return hashlib.sha256(json.dumps(layout.to_json(), sort_keys=True).encode()).hexdigest()


def asked_lookup(descriptor: bytes, table: Table) -> AskedLookup:
    """Read a descriptor; InputError for one that no asker of this version writes.

    Of the options only the partitions count, so that nobody chooses how much memory the service takes.
    """
    content = _checked(descriptor, _LOOKUP)
    options = {SCAN_PARTITIONS.key: content["partitions"]} if content["partitions"] else {}
    lookup_options({}, options)
    spec = LookupSpec.from_json(
        {
            "identifier": str(table.identifier),
            "keys": content["keys"],
            "columns": content["columns"],
            "where": content["where"],
            "options": options,
            "group": None,
            "rights": None,
        }
    )
    return AskedLookup(content["table"], content["schema"], spec, content["layout"])


def asked_table(asked: AskedLookup, newest: Table) -> tuple[Table, CacheLayout]:
    """Return the table as a lookup was planned with it, and the layout of its rows.

    Raises LookupCacheError as `planned_table`, and InputError unless the asker has the same layout.
    """
    table = planned_table(newest, asked.table_id, asked.schema_id, asked.spec)
    layout = layout_of(asked.spec, table.schema)
    if asked.layout_digest != digest_of(layout):
        raise InputError(
            f"a query service for {table.identifier} was asked with another schema or version of Lockgate "
            "than its own: start the query again, with one version on both sides"
        )
    return table, layout


def snapshot_in(content: bytes) -> SnapshotJson:
    """Read the snapshot of a question; InputError for what is none."""
    found: SnapshotJson = _checked(content, _SNAPSHOT)
    return found


def answer_in(content: bytes) -> Any:
    """Read a `SnapshotJson` or a `FailureJson` of an answer; InputError for anything else."""
    return _checked(content, _ANSWER)


def _checked(content: bytes, shape: Any) -> Any:
    try:
        found = json.loads(content)
        fault = fault_in(shape, found)
    except (ValueError, RecursionError):
        fault = "it is not JSON"
    if fault is not None:
        raise InputError(f"the peer of a query service does not speak its protocol: {fault}")
    return found
