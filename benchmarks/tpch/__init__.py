"""TPC-H: its tables in Lockgate, its queries, and DuckDB's answers to them."""
