"""Lookup joins, CALL procedures, push-down and encrypted ORC tables for PySpark."""
