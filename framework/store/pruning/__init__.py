"""Pruning: the splits of a scan, and the steps by which it leaves files out."""
