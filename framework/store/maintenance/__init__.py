"""Maintenance: files rewritten, snapshots expired, partitions dropped, orphans removed."""
