"""Pods as Docker containers."""
