"""Content of an index of lineage: its edges as a table, for questions in SQL, and its processes."""

from __future__ import annotations

import sqlite3

from lockgate.framework.lineage.store.edges import all_edges


def spread(database: sqlite3.Connection) -> sqlite3.Connection:
    """Put all edges into the temporary table `back(target, source, process, kinds)`; return the database."""
    database.execute("CREATE TEMP TABLE IF NOT EXISTS back(target, source, process, kinds)")
    database.execute("DELETE FROM back")
    database.executemany("INSERT INTO back VALUES (?, ?, ?, ?)", all_edges(database).tolist())
    return database


def everything(database: sqlite3.Connection) -> list[int]:
    """Return the numbers of all processes."""
    return [row[0] for row in database.execute("SELECT id FROM process ORDER BY last, id")]
