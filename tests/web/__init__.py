"""Tests of the admin page."""
