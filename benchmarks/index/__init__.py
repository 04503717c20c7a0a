"""Parts of the benchmark of indexes: the events searched, and a table of files that are not there."""
