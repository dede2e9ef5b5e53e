"""The check `training_loop`."""
