"""Runs prepared ahead, so that nobody waits for interpreters and imports."""
