"""Scans: which files of a snapshot a query must read, what metadata answers alone, and the reading."""
