"""The index database: segments of a table that say in which files, and where in them, values are."""
