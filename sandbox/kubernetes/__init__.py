"""Pods as Jobs of a Kubernetes cluster."""
