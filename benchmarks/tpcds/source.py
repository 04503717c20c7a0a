"""The tables and the 99 queries of TPC-DS, made by DuckDB's extension from the package index.

The extension fits one release of DuckDB only, so that both live in a virtual environment of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parents[2] / ".venv-tpcds"
VERSION = "1.5.5"
PACKAGES = [f"duckdb=={VERSION}", f"duckdb-extension-tpcds=={VERSION}"]
TABLES = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address"),
    *("customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item"),
    *("promotion", "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse"),
    *("web_page", "web_returns", "web_sales", "web_site"),
)
_MAKE = """
import json, pathlib, sys
import duckdb, duckdb_extension_tpcds as package

folder, scale, tables = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
(extension,) = pathlib.Path(package.__file__).parent.glob("extensions/*/tpcds.duckdb_extension")
database = duckdb.connect(str(folder / "made.duckdb"))
database.execute(f"LOAD '{extension}'")
database.execute(f"CALL dsdgen(sf={scale})")
for name in tables:
    database.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")
queries = database.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
(folder / "queries.json").write_text(json.dumps(dict(queries)))
"""


def generate(folder: Path, scale: float) -> None:
    """Write the tables as Parquet and the queries into `folder`, unless they are there."""
    if (folder / "queries.json").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _run([_python(), "-c", _MAKE, str(folder), f"{scale:g}", ",".join(TABLES)])
    (folder / "made.duckdb").unlink()


def queries(folder: Path) -> dict[int, str]:
    """The queries by their numbers, as Spark reads them: quoted names are in backquotes."""
    texts = json.loads((folder / "queries.json").read_text())
    return {
        int(number): re.sub(r'"([^"]*)"', r"`\1`", text.strip().rstrip(";")) for number, text in texts.items()
    }


def _python() -> str:
    python, mark = VENV / "bin" / "python", VENV / "lockgate-stamp"
    if not mark.exists() or mark.read_text() != repr(PACKAGES):
        _run([sys.executable, "-m", "venv", str(VENV)])
        _run([str(python), "-m", "pip", "install", "-q", *PACKAGES])
        mark.write_text(repr(PACKAGES))
    return str(python)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"TPC-DS could not be made: {done.stderr[-500:]}")
