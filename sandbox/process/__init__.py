"""Pods as processes of this host, without any isolation."""
