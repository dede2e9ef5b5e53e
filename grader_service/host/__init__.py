"""This host: its GPU and its locks, the sandbox that pods run in, what it is made of, and what is wrong with it."""
