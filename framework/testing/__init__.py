"""Suites for authors of plugins: subclass one in your tests, and pytest runs it."""
