"""Re-grading cohorts: batches whose verdicts stay aside until they are applied."""
