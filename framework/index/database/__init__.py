"""The index database: segments of a table that say which blocks of which files hold a value."""
