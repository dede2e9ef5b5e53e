"""Builds the images that pods and the service run from; learners never influence one."""
