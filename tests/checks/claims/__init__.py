"""Tests of the built-in checks that judge evidence, or what a probe read in the learner's process."""
