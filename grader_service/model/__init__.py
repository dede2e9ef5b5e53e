"""The words of the service as frozen pydantic models; no module here does any I/O."""
