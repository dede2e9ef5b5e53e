"""The pages, one module per subject; each function answers one request and runs in a thread."""
