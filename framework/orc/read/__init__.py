"""Reading ORC files into Arrow tables, with as few of their bytes as a predicate allows."""
