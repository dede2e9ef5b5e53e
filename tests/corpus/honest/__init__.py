"""Submissions of good faith in the style of different people; each module has its `CASES`."""
