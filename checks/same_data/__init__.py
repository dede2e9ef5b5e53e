"""The check `same_data`."""
