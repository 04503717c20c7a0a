"""Procedures on a table's history: tags, branches, rollback, expiry, orphan files."""
