"""Patterns of LIKE, regular expressions and words in predicates, and the literals that each requires."""
