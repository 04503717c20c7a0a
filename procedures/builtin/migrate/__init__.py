"""Migration: converting tables and folders of ORC files to Lockgate tables."""
