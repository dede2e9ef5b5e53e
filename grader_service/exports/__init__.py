"""Verdicts in the formats of other platforms: Gradescope, PrairieLearn and JUnit XML."""
