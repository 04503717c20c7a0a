"""The main job on real data: the flights of New York in 2013, enriched while they stream."""
