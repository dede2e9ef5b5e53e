"""Runners on hosts of their own: certificates, the connections, and what a host is given."""
