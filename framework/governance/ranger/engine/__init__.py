"""The engine: one request, decided in Ranger's own order."""
