"""Indexes of tables: Paimon's file indexes and the index database, which writers build and scans use.

This is a plugin: lower layers use it only through the hooks for pruners, collectors, system tables and
procedures.
"""

__all__: list[str] = []
