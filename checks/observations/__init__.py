"""What probes observed, and what else is known of a run, as models that several checks judge."""
