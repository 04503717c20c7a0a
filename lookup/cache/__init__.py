"""Caches: their storage, how they are built, and how they follow their table."""
