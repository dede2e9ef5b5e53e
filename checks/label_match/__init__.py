"""The check `label_match`."""
