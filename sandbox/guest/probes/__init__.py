"""What probes see: contexts with a stable interface, described in `docs/check-contract.md`."""
