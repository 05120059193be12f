"""A source tree: found, read strictly, and what it says of its licence, its authors and its canaries."""
