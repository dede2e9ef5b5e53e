"""A check for the grader: mean_brightness."""
