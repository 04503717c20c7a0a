"""Parts of the plan of a scan: the figures of it, the files that joins leave, and those of rewrites."""
