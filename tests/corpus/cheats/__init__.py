"""Attacks: a module for each family, each with its `CASES`."""
