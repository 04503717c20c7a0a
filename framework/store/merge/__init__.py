"""Merging of the rows with one key: their order, the plan, the merge engines and their functions."""
