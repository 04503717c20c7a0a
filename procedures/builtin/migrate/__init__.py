"""Migration: tables and folders of ORC files taken over by Lockgate."""
