"""Rows in files: their kinds, buckets and deletion, and the statistics kept of them."""
