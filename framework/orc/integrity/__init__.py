"""Tags that show whether the bytes of an encrypted ORC file are those that were written."""
