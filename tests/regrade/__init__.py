"""Tests of re-grading."""
