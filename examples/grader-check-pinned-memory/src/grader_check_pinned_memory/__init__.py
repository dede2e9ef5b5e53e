"""A check for the grader: pinned_memory."""
