"""One grading, from an artifact to a signed verdict: `flow` shows it on one screen, the others do one step each."""
