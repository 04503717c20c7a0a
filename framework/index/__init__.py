"""Indexes of tables: Paimon's file indexes and the index database, built by writers and used by scans.

A plugin: lower parts know it only through the hooks for pruners, collectors, system tables and procedures.
"""

__all__: list[str] = []
