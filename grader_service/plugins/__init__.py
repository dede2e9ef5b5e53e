"""What installed packages declare and where their files lie, found without importing them."""
