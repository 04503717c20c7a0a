"""Texts in predicates: patterns of LIKE, regular expressions, words, and the literals that each requires."""
