"""Re-grading cohorts: batches whose verdicts are staged until they are applied."""
