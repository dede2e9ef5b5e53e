"""What is checked: the check API, the registry and the built-in checks."""
