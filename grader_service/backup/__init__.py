"""Backups of the service, the journal of answers beside them, and what restores both."""
