"""`grader web`: a small admin page over the store. Reads by default; what changes something asks for a token."""
