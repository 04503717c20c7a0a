"""Options: those of Paimon's own jar are declared here, and in the list that the other tests compare with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exact_rows import exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.options.table_options import option_of
from lockgate.framework.store import Catalog
from lockgate.pushdown import col

pytestmark = pytest.mark.interop
LIST = Path(__file__).parents[1] / "fixtures" / "paimon" / "options.json"


def test_every_option_of_the_jar_is_declared(paimon_java: PaimonJava, tmp_path: Path) -> None:
    names = set(paimon_java.ask(str(tmp_path), "db.t", "options"))
    assert len(names) > 300
    assert sorted(name for name in names if option_of(name) is None) == []
    stored = {name for group in json.loads(LIST.read_text()).values() for name in group}
    assert sorted(names - stored) == [], "add them to the stored list too"


# The bundle writes no Snappy without snappy-java; `test_metadata_formats` reads that.
@pytest.mark.parametrize(
    "options",
    [
        {"manifest.format": "orc"},
        {"manifest.format": "parquet"},
        {"manifest.compression": "gzip", "manifest.format": "parquet"},
    ],
    ids=["orc", "parquet", "parquet gzip"],
)
@pytest.mark.parametrize("keys", [("id", "p"), ()], ids=["key", "append"])
def test_manifests_of_every_format_are_read(
    paimon_java: PaimonJava, tmp_path: Path, options: dict[str, str], keys: tuple[str, ...]
) -> None:
    theirs = PaimonTable(paimon_java, str(tmp_path), "db.t")
    columns = [("id", "BIGINT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "TIMESTAMP(6)")]
    bucket = {"bucket": "2"} if keys else {}
    theirs.create(columns, primary_keys=keys, partition_keys=["p"], options={**options, **bucket})
    for number in range(3):
        theirs.write([[number * 2, "x", None], [number * 2 + 1, f"p{number}", None]])
    if keys:
        theirs.write([[0, "x", None]], kind="-D")
        theirs.compact()
    table = Catalog(tmp_path).load_table("db.t")
    rows = theirs.read().rows
    assert in_order(exact_rows(table.read())) == rows
    assert len(rows) == (5 if keys else 6)
    assert table.read(predicate=col("p") == "p1")["id"].to_pylist() == [3]
    with pytest.raises(UnsupportedFormatError, match=r"'manifest\.format'"):
        table.append(table.read())
