"""The tests: a file per module of the packages."""
