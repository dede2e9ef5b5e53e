"""The check `shuffle_determinism`."""
