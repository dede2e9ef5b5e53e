"""The check `auto_augment`."""
