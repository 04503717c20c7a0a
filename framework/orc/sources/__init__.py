"""Random access to the bytes of local and remote files."""
