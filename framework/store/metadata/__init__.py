"""The small files of a table, such as snapshots, schemas and tags, and where every file lies."""
