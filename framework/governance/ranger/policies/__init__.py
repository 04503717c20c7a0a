"""Policies: the service definition, what policies say, and the index that finds those of a resource."""
