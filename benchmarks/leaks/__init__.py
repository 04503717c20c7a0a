"""What the benchmark of leaks does, and what it counts."""
