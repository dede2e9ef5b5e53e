"""Images of other people's software for hosts without a container registry."""
