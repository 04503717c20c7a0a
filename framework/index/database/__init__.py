"""The index database: segments of a table with the blocks of files that have each value."""
