"""Files that Paimon replaces by themselves, with an index in the manifest, are read once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from paimon_java import PaimonJava, PaimonTable

from lockgate.framework.store import Catalog

pytestmark = pytest.mark.interop

OPTIONS = {
    "bucket": "-1",
    "manifest.merge-min-count": "3",
    "manifest.target-file-size": "4 kb",
    "file-index.bloom-filter.columns": "id",
    "file-index.in-manifest-threshold": "1 mb",
}


def test_files_that_paimon_has_indexed(catalog: Catalog, paimon_java: PaimonJava) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("id", "BIGINT")], options=OPTIONS)
    table = catalog.load_table("db.t")
    table.commit([message for n in range(40) for message in table.write(pa.table({"id": [n]}))])
    theirs.index()
    live = table.manifests.live_files(table.latest_snapshot())
    assert len(live) == 40
    assert all(entry.file.embedded_index for entry in live)
    for n in range(40, 46):  # more manifests than stay apart
        table.append(pa.table({"id": [n]}))
        assert sorted(table.read()["id"].to_pylist()) == list(range(n + 1))
        assert sorted(row[0] for row in theirs.read().rows) == list(range(n + 1))
    theirs.write([[46]])
    assert theirs.expire(1) > 0
    assert sorted(table.read()["id"].to_pylist()) == list(range(47))
