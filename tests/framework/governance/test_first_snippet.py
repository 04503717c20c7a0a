"""The first snippet of docs/governance.md runs as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from ranger_world import allow, service

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import Principal
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog, Schema

PAGE = Path(__file__).parents[3] / "docs" / "governance.md"


def test_the_snippet_guards_the_table(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    table.append(pa.table({"id": [1]}))
    policies = tmp_path / "policies"
    policies.write_text(json.dumps(service(allow("lake.db.people.*", users=["ann"]))))
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    text = found[1].replace("/data/warehouse", str(tmp_path / "warehouse"))
    code = text.replace("/etc/lockgate/policies", str(policies))
    before = set(plugins().names())
    try:
        exec(f"{code}\nassert people.read()['id'].to_pylist() == [1]", {})
        with pytest.raises(AccessDeniedError, match="apply for"):
            Catalog(tmp_path / "warehouse", principal=Principal("bob")).load_table("db.people").read()
    finally:
        for name in set(plugins().names()) - before:
            plugins().unregister(name)
