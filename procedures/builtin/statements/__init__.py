"""Procedures that stand for statements of SQL."""
