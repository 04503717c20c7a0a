"""Procedures on partitions: dropping, expiring and marking them as complete."""
