"""Manifests: which data files a snapshot has, and the statistics of each."""
