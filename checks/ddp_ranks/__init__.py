"""The check `ddp_ranks`."""
