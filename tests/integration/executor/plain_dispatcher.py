"""A dispatcher of a page that drives the connector's executor side alone: tables are lists of files."""

from __future__ import annotations

import base64
import traceback
from pathlib import Path
from typing import Any

from messages import answer

from lockgate.framework.spark.bridge.bridge_server import BridgeServer
from lockgate.framework.spark.bridge.protocol import decode_question, encode_answer, encode_error
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

# The digits of Spark's timestamps after the second.
MICROSECONDS = 6


class PlainTable:
    """A table: schema in Spark's JSON, files to read, and what write.begin shall answer."""

    def __init__(self, location: str, schema: dict[str, Any], **begin: Any) -> None:
        self.location = location
        self.schema = schema
        self.begin = begin
        self.splits: list[dict[str, Any]] = []
        self.schemas: dict[str, list[dict[str, Any]]] | None = None
        self.written: list[dict[str, Any]] = []
        self.key_scope: str | None = None
        self.merge_plan: dict[str, Any] | None = None
        self.snapshot = 1

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [
            {"id": position, "name": field["name"], "type": field["type"]}
            for position, field in enumerate(self.schema["fields"])
        ]

    def add(
        self, *paths: str, merge: bool = False, partition: dict[str, Any] | None = None, schema_id: int = 0
    ) -> None:
        files = [
            {"path": f"file://{path}", "size": Path(path).stat().st_size, "schema_id": schema_id}
            for path in paths
        ]
        self.splits.append({"partition": partition or {}, "bucket": 0, "merge": merge, "files": files})


class PlainDispatcher:
    """Answers the connector from `tables`, `keys` (a KeyProvider by scope) and nothing else."""

    def __init__(self, spark: Any) -> None:
        self.tables: dict[str, PlainTable] = {}
        self.keys: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._server = BridgeServer(self.reply, lambda: None)
        bridge = spark.sparkContext._jvm.io.lockgate.spark.bridge.Bridge
        folder, secret = str(self._server.folder), self._server.secret
        complaint = bridge.register(folder, secret, VERSION, BRIDGE_PROTOCOL, False)
        assert complaint is None, complaint

    def reply(self, message: bytes) -> bytes:
        try:
            question = decode_question(message)
            self.asked.append((question.operation, question.request))
            found = getattr(self, question.operation.replace(".", "_"))(question.request)
            return encode_answer(answer(question.operation, found) if isinstance(found, dict) else found)
        except Exception as error:
            return encode_error(type(error).__name__, f"{error} {traceback.format_exc()}")

    def catalog_open(self, request: dict[str, Any]) -> Any:
        return {"handle": "plain"}

    def namespace_load(self, request: dict[str, Any]) -> Any:
        return {}

    def table_load(self, request: dict[str, Any]) -> Any:
        table = self.tables.get(request["name"])
        if table is None:
            return {"missing": f"no table {request['name']}"}
        described = {
            "name": request["name"],
            "schema": table.schema,
            "partitioning": table.begin.get("partition_keys", []),
            "primary_key": table.begin.get("primary_key", []),
            "bucket": table.begin.get("bucket"),
            "properties": {},
            "location": table.location,
            "snapshot_id": table.snapshot,
            "schema_id": 0,
            "table_id": request["name"],
            "scan_metrics": [],
        }
        return {"table": described}

    def governance_decide(self, request: dict[str, Any]) -> Any:
        open_to_all = {
            "restricted": False,
            "refused": False,
            "denied": [],
            "masks": {},
            "rights": "",
            "filter": None,
            "grant": None,
        }
        return {"free": [], "free_settings": [], "relations": [open_to_all for _ in request["relations"]]}

    def scan_filters(self, request: dict[str, Any]) -> Any:
        every = list(range(len(request["filters"])))
        return {"accepted": every, "remaining": every}

    def scan_plan(self, request: dict[str, Any]) -> Any:
        table = self.tables[request["name"]]
        return {
            "snapshot_id": table.snapshot,
            "rows": 1000,
            "bytes": 1000,
            "key_scope": table.key_scope,
            "merge_plan": table.merge_plan,
            "schema_id": 0,
            "integrity": "verify",
            "schemas": table.schemas or {"0": table.fields},
            "splits": table.splits,
        }

    def scan_selective(self, request: dict[str, Any]) -> Any:
        return []

    def write_begin(self, request: dict[str, Any]) -> Any:
        table = self.tables[request["name"]]
        begin = {
            "write_id": "w",
            "location": f"file://{table.location}",
            "schema_id": 0,
            "fields": [field | {"precision": MICROSECONDS} for field in table.fields],
            "partition_keys": [],
            "primary_key": [],
            "bucket": None,
            "dynamic_buckets": False,
            "moves_keys": False,
            "records": False,
            "format": "orc",
            "parquet_footer": None,
            "first_sequence": 0,
            "stats": {field["name"]: {"bounds": True, "length": 16} for field in table.fields},
            "index_keys": None,
            "dictionaries": True,
            "partition_default_name": "__DEFAULT_PARTITION__",
            "partition_legacy_name": True,
            "encrypt": None,
            "mask": None,
            "key_scope": table.key_scope,
            "compression": "zstd",
            "target_file_size": 128 << 20,
        }
        return {**begin, **table.begin}

    def write_commit(self, request: dict[str, Any]) -> Any:
        table = self.tables[request["name"]]
        table.written.extend(request["messages"])
        table.snapshot += 1
        return {"snapshot_id": table.snapshot}

    def write_abort(self, request: dict[str, Any]) -> Any:
        return True

    def delete_can(self, request: dict[str, Any]) -> Any:
        return False

    def keys_unwrap(self, request: dict[str, Any]) -> Any:
        from lockgate.errors import KeyMissingError
        from lockgate.framework.keys import KeyAlgorithm, KeyMetadata

        algorithm = next(one for one in KeyAlgorithm if request["algorithm"] in (one.name, one.value))
        key = KeyMetadata(request["name"], request["version"], algorithm)
        try:
            plain = self.keys[request["scope"]].decrypt_local_key(key, base64.b64decode(request["encrypted"]))
        except KeyMissingError:
            return {"plain": None}
        return {"plain": base64.b64encode(plain).decode()}

    def keys_create(self, request: dict[str, Any]) -> Any:
        provider = self.keys[request["scope"]]
        key = provider.current_key(request["name"])
        local = provider.create_local_key(key)
        return {
            "name": key.name,
            "version": key.version,
            "algorithm": key.algorithm.name,
            "plain": base64.b64encode(local.plain).decode(),
            "encrypted": base64.b64encode(local.encrypted).decode(),
        }
