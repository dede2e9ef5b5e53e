"""A process that alone talks to the Docker engine, and starts pods for a runner that does not."""
