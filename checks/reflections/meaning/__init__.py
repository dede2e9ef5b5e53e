"""What an entry says, as a small text model reads it."""
