"""The check `acceptance_metric`."""
