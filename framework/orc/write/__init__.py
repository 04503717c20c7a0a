"""Writing Arrow tables as ORC files, with encrypted columns or without."""
