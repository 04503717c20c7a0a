"""A hunt: events stream from a topic into an indexed table, which is searched while they come."""
