"""Conditions of policies: scripts, macros, schedules and the other evaluators that Ranger ships."""
