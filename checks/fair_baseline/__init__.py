"""The check `fair_baseline`."""
