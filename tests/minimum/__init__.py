"""What must work with the oldest versions that pyproject.toml allows; `make minimum` runs it with exactly these."""
