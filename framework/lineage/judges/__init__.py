"""Changes and writes, judged before they are made by what the lineage knows."""
