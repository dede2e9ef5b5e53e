"""The check `shard_coverage`."""
