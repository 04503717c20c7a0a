"""Writes: rows into files, and files into one atomic commit."""
