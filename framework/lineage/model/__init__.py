"""Datasets, processes, runs and kinds of edges: frozen values that know no file and no database."""
