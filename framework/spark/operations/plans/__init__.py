"""Parts of the plan of a scan: the figures of it, and the files that joins leave."""
