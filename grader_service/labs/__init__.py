"""Labs as data: specifications in TOML or YAML, where they are found, and what is wrong with them."""
