"""Random tables, changes and queries, and what they must answer: plain Spark and a model of tables."""
