"""Starts what the tests need and the machine lacks."""
