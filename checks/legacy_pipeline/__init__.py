"""The check `legacy_pipeline`."""
