"""The check `epoch_coverage`."""
