"""A check for the grader: stable_batches."""
