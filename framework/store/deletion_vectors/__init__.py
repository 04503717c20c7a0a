"""Deletion vectors: the rows of data files that are deleted, in files of their own."""
