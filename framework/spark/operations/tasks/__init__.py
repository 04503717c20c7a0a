"""Messages of tasks that write: the keys of their files."""
