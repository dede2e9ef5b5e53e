"""The check `reflections`."""
