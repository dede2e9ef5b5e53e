"""The whole stack in containers."""
