"""Questions to the index: traces, readers of a column, places of plaintext."""
