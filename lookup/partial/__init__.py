"""Lookups of tables too large to keep: rows are read when their keys are asked for."""
