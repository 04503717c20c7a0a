"""Rows in files: their order, buckets, merging by key, and the statistics kept of them."""
