"""Enforcement: what a statement may read, write and set in a governed session."""
