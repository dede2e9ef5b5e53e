"""The check `normalisation`."""
