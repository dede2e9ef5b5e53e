"""What is wrong with an entry whatever it is about, in any language: a module for each reason."""
