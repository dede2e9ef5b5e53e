"""Probes of the built-in checks: files that are copied into pods and never imported; see `checks.probe_files`."""
