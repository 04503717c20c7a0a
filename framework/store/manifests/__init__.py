"""Manifests: which data files a snapshot has, what is known of each, and how that is encoded."""
