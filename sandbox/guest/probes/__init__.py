"""What probes see: contexts with a stable interface, described in `docs/writing-checks.md`."""
