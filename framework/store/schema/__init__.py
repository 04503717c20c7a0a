"""The columns of a table: their schema, types, defaults, and how they change over time."""
