"""Caches: what they are kept in, how they are built, and how they follow their table."""
