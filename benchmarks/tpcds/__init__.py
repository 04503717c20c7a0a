"""TPC-DS: its data and queries, by DuckDB's extension."""
