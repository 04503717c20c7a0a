"""Edges of an index of lineage as a table, for questions in SQL."""

from __future__ import annotations

import sqlite3

from lockgate.framework.lineage.store.edges import all_edges


def spread(database: sqlite3.Connection) -> sqlite3.Connection:
    """Put all edges into the temporary table `back(target, source, process, kinds)`; return the database."""
    database.execute("CREATE TEMP TABLE IF NOT EXISTS back(target, source, process, kinds)")
    database.execute("DELETE FROM back")
    database.executemany("INSERT INTO back VALUES (?, ?, ?, ?)", all_edges(database).tolist())
    return database
