"""Pages about many verdicts: a cohort, and what a batch of re-grades changes; one file each, opened offline."""
