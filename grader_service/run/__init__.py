"""What one run of a submission does: its pods, the code of the learner in one of them, scans and probes."""
