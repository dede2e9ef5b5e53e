"""Platforms that are not ours, as they would use the service."""
