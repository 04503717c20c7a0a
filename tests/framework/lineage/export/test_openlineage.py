"""Events checked with the schemas of OpenLineage 2-0-2, and their delivery to a service that may fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator
from lineage_edges import everything
from referencing import Registry, Resource

from lockgate.cli.main import main
from lockgate.errors import InputError, LineageError
from lockgate.framework.lineage import Dataset, EdgeKind, Record, Run, Shape
from lockgate.framework.lineage.export import openlineage
from lockgate.framework.lineage.export.delivery import Delivery
from lockgate.framework.lineage.export.openlineage_names import file_name, path_of
from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of
from lockgate.framework.store import Catalog

SCHEMAS = Path(__file__).parents[3] / "fixtures" / "openlineage"
CONTENTS = {path.stem: json.loads(path.read_text()) for path in sorted(SCHEMAS.glob("*.json"))}
REGISTRY: Registry[Any] = Registry().with_resources(
    (each["$id"], Resource.from_contents(each)) for each in CONTENTS.values()
)
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"

SHAPES = [
    Shape(
        "CREATE_TABLE_AS_SELECT",
        Dataset.table("hr", "a"),
        (Dataset("file:/in", "file"),),
        (("x", 0, "x", 1),),
    ),
    Shape(
        "MERGE",
        Dataset.table("h`r", "b.c"),
        (Dataset.table("hr", "a"), Dataset("t", "table", "file:/elsewhere")),
        tuple((f"c{kind.value}", 0, "x", int(kind)) for kind in EdgeKind),
        rows=(
            (0, "x", int(EdgeKind.JOIN | EdgeKind.FILTER)),
            (1, "y", int(EdgeKind.SORT | EdgeKind.GROUP_BY)),
        ),
    ),
    Shape("STREAM", Dataset("sink", "sink"), (Dataset.table("hr", "a"),), cut=True, name="orders"),
    Shape("CALL", None, name="compact"),
    Shape("DROP_TABLE", Dataset.table("hr", "a")),
    Shape("SELECT", Dataset("result", "result"), (Dataset.table("hr", "a"),), (("x", 0, "x", 4096),)),
]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    for name in ("URL", "ENDPOINT", "API_KEY"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    for number, shape in enumerate(SHAPES):
        run = Run(1000, 2000 + number, how="SELECT ?", written=number, failed=number % 2, rows=3, bytes=99)
        lineage_of(catalog).journal.add(Record(shape, run))
    return catalog


def events(catalog: Catalog) -> list[dict[str, Any]]:
    with lineage_of(catalog).reading() as database:
        return list(openlineage.events(database, address_of(catalog), everything(database)))


def validate(value: Any, reference: str) -> None:
    Draft202012Validator({"$ref": reference}, registry=REGISTRY).validate(value)


def facets(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "_schemaURL" in value:
            yield value
        for each in value.values():
            yield from facets(each)
    elif isinstance(value, list):
        for each in value:
            yield from facets(each)


def test_events_and_their_facets_fit_the_schemas(catalog: Catalog) -> None:
    found = events(catalog)
    assert len(found) == 2 * len(SHAPES)
    seen = set()
    for event in found:
        validate(event, EVENT)
        assert event["schemaURL"] == EVENT
        for facet in facets(event):
            validate(facet, facet["_schemaURL"])
            seen.add(facet["_schemaURL"].rpartition("/")[2])
            assert urlsplit(facet["_producer"]).scheme
    assert seen >= {
        *("ColumnLineageDatasetFacet", "JobTypeJobFacet", "SQLJobFacet", "ProcessingEngineRunFacet"),
        *("DatasetVersionDatasetFacet", "ErrorMessageRunFacet", "OutputStatisticsOutputDatasetFacet"),
    }


def test_the_schemas_refuse_malformed_events(catalog: Catalog) -> None:
    from jsonschema import ValidationError

    event = events(catalog)[1]
    facet = event["outputs"][0]["facets"]["columnLineage"]
    for wrong, reference in (
        ({**event, "run": {"runId": 7}}, EVENT),
        ({key: each for key, each in event.items() if key != "producer"}, EVENT),
        ({key: each for key, each in facet.items() if key != "fields"}, facet["_schemaURL"]),
    ):
        with pytest.raises(ValidationError):
            validate(wrong, reference)


@pytest.mark.parametrize(
    ("path", "namespace", "name", "back"),
    [
        ("file:/in/a.csv", "file", "/in/a.csv", "file:/in/a.csv"),
        ("file:///in", "file", "/in", "file:/in"),
        ("s3a://bucket/a/b", "s3://bucket", "a/b", "s3://bucket/a/b"),
        ("gs://bucket/", "gs://bucket", "", "gs://bucket/"),
        ("hdfs://host:8020/a", "hdfs://host:8020", "/a", "hdfs://host:8020/a"),
        ("abfss://box@account/a", "abfss://box@account", "/a", "abfss://box@account/a"),
        ("file:/a,file:/b", "file", "file:/a,file:/b", "file:/a,file:/b"),
    ],
)
def test_files_are_named_by_the_specification(path: str, namespace: str, name: str, back: str) -> None:
    assert file_name(path) == (namespace, name)
    assert path_of(namespace, name) == back


def test_external_tables_are_no_files() -> None:
    assert path_of("snowflake://account", "db.s.t") is None


# --- delivery ----------------------------------------------------------------------------------


@dataclass
class Service:
    """A service that answers what it is told, then 201."""

    answers: list[int] = field(default_factory=list)
    retry_after: str | None = None
    taken: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = made.answers.pop(0) if made.answers else 201
            if status == 201:
                made.taken.append((self.path, self.headers["Authorization"], body))
            self.send_response(status)
            if made.retry_after:
                self.send_header("Retry-After", made.retry_after)
            if status == 302:
                self.send_header("Location", f"{made.url}/elsewhere")
            self.end_headers()
            self.wfile.write(b"what is wrong")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


def test_events_are_sent_in_order_with_the_key(
    catalog: Catalog, service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cret")
    monkeypatch.setenv("OPENLINEAGE_URL", service.url)
    command = ["lineage", "export", "--warehouse", catalog.warehouse, "--format"]
    assert main([*command, "openlineage", "--send"]) == 0
    out, _ = capsys.readouterr()
    assert out == f"{2 * len(SHAPES)} events sent\n"
    assert {(path, key) for path, key, _ in service.taken} == {("/api/v1/lineage", "Bearer s3cret")}
    assert [each for _, _, each in service.taken] == events(catalog)
    assert main([*command, "atlas", "--send"]) == 1
    assert "s3cret" not in repr(Delivery.from_environment())


def test_a_temporary_failure_is_retried(service: Service) -> None:
    service.answers = [503, 429, 500]
    service.retry_after = "0.01"
    place = Delivery.from_environment(service.url, waits=(0.0, 0.0, 0.0))
    assert place.send([{"n": 1}, {"n": 2}]) == 2
    assert [each["n"] for _, _, each in service.taken] == [1, 2]
    service.answers = [503] * 4
    with pytest.raises(LineageError, match=r"event 1 was not accepted: .* status 503"):
        place.send([{"n": 3}])


@pytest.mark.parametrize("status", [400, 401, 302])
def test_a_refusal_is_final(service: Service, status: int) -> None:
    service.answers = [201, status]
    with pytest.raises(LineageError, match=f"event 2.* status {status} .*what is wrong"):
        Delivery.from_environment(service.url, waits=(9.0,)).send([{}, {}])
    assert len(service.taken) == 1


def test_a_refused_event_does_not_block_others(service: Service) -> None:
    service.answers = [201, 422, 201, 400, 201]
    with pytest.raises(
        LineageError, match=r"took 3 events and refused 2 for good: event 2: .*event 4: status 400"
    ):
        Delivery.from_environment(service.url, waits=(9.0,)).send([{"n": n} for n in range(1, 6)])
    assert [each["n"] for _, _, each in service.taken] == [1, 3, 5]


def test_sending_stops_if_the_service_refuses_everything(service: Service) -> None:
    service.answers = [400] * 1_000
    with pytest.raises(LineageError, match="took 0 events and refused 100 for good"):
        Delivery.from_environment(service.url, waits=(9.0,)).send([{}] * 1_000)


def test_an_unreachable_service(service: Service) -> None:
    place = Delivery("http://127.0.0.1:9/api", waits=(0.0,))
    with pytest.raises(LineageError, match="refused"):
        place.send([{}])


def test_addresses_that_would_show_a_key_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (None, "ftp://host", "marquez", "http://ann:secret@host"):
        with pytest.raises(InputError) as caught:
            Delivery.from_environment(wrong)
        assert "secret" not in str(caught.value)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cret")
    with pytest.raises(InputError, match="in the clear"):
        Delivery.from_environment("http://marquez.example")
    assert (
        Delivery.from_environment("https://marquez.example/").url == "https://marquez.example/api/v1/lineage"
    )
