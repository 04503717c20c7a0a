"""Compaction: small and overlapping files written as fewer and larger ones."""
