"""The check `throughput_ratio`."""
