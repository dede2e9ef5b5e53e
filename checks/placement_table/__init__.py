"""The check `placement_table`."""
