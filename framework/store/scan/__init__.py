"""Scans: choice of a snapshot's files, answers from metadata alone, and the reading of rows."""
