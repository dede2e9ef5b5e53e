"""Held-out images and the proof that they were decoded: made on the host, judged on the host, never by learner code."""
