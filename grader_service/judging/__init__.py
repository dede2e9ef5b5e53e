"""From evidence to a verdict: checks judge in a process of their own; no sandbox and no learner code."""
