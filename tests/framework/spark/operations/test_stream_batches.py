"""Streams as the connector asks for them, without Spark: batches, consumers, and answers to lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from messages import request

from lockgate.errors import BridgeError, InputError
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.streams.position import StreamPlace

SCHEMA = pa.schema([("id", pa.int64())])


class Asker:
    """The table `db.t` of two snapshots, and a query that follows it from the first."""

    def __init__(self, folder: Path) -> None:
        self.dispatcher = Dispatcher()
        warehouse = str(folder / "warehouse")
        asked = request("catalog.open", {"catalog": "lake", "options": {"warehouse": warehouse}})
        opened: Any = self.dispatcher.answer("catalog.open", asked)
        catalog = Catalog(warehouse)
        catalog.create_namespace("db")
        self.table: Table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
        for number in (1, 2):
            self.table.append(pa.table({"id": [number]}))
        self.given: dict[str, Any] = {"catalog": opened["handle"], "namespace": ["db"], "name": "t"}
        self.given |= {"columns": ["id"], "source": "0", "properties": {"query_id": "q", "batch_id": "4"}}
        self.start = StreamPlace(1, 0, False, self.table.table_id).to_json()

    def ask(self, operation: str, **given: Any) -> Any:
        return self.dispatcher.answer(operation, request(operation, {**self.given, **given}))


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    return Asker(tmp_path)


def test_a_batch_is_planned_and_kept_until_it_is_committed(asker: Asker) -> None:
    found = asker.ask("stream.end", start=asker.start, limited=True)
    assert (StreamPlace.from_json(found["end"]).snapshot_id, found["newest"]) == (3, 2)
    assert asker.table.consumers() == {"stream-q-0": 1}
    batch = asker.ask("stream.batch", start=asker.start, end=found["end"])
    assert [file["rows"] for split in batch["plan"]["splits"] for file in split["files"]] == [1, 1]
    assert (batch["left_out"], batch["overwrites"], batch["drops_retracts"]) == (0, 0, False)
    assert asker.table.consumers() == {"stream-q-0": 1}
    assert asker.ask("stream.progress", end=found["end"])
    assert asker.table.consumers() == {"stream-q-0": 3}
    assert asker.dispatcher.streams.names() == ["stream-q-0"]
    assert asker.ask("stream.stop")
    assert asker.dispatcher.streams.names() == []
    assert asker.table.consumers() == {"stream-q-0": 3}


def test_names_of_sources_become_names_of_files(asker: Asker) -> None:
    asker.ask("stream.end", start=asker.start, source="a/../ü b")
    assert list(asker.table.consumers()) == ["stream-q-a_..___b"]


def test_what_no_query_asks(asker: Asker) -> None:
    with pytest.raises(BridgeError, match="outside a streaming query"):
        asker.ask("stream.end", start=asker.start, properties={"query_id": None, "batch_id": None})
    with pytest.raises(InputError, match="no position of a stream"):
        asker.ask("stream.end", start="{}")
    with pytest.raises(InputError, match="cannot be a consumer id"):
        asker.ask("stream.end", start=asker.start, options={"consumer-id": "../../x"})
    end = asker.ask("stream.end", start=asker.start, limited=True)["end"]
    with pytest.raises(InputError, match="cannot go from"):
        asker.ask("stream.batch", start=end, end=asker.start)
