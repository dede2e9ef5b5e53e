"""The process that alone reads the signing key, and those that ask it."""
