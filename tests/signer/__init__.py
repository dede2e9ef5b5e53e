"""The process that signs, and the keys."""
