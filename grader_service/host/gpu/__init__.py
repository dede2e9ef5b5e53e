"""Stewardship of one GPU: is it clean before a run, what did the driver report during it, may it be used again."""
