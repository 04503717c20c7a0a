"""Compaction: rewriting small and overlapping files as fewer and larger ones."""
