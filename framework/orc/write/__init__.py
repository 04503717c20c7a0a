"""Writing Arrow tables as ORC files, with or without encrypted columns."""
