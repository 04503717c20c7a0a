"""Reading ORC files into Arrow tables, skipping the bytes that a predicate does not need."""
