"""What `make check`, `make test`, `make test-all` and CI run; docs/testing.md describes it."""
