"""Bytes of a file, wherever it lies, by their positions."""
