"""Indexes of tables: Paimon's file indexes, written with data files and asked by scans.

A plugin: what is below knows of it by the hooks for pruners, collectors, system tables and procedures.
"""

__all__: list[str] = []
