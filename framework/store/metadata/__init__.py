"""The small files of a table, such as snapshots and schemas, and where every file lies."""
