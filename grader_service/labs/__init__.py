"""Labs as data: specifications in TOML, and the catalogue that loads them."""
