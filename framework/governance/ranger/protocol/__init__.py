"""Ranger's protocol: downloads of policies, roles, users and tags from its admin, with a cache on disk."""
