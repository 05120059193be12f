"""Unsupported statements: what judges list in a document that its source does not say, merged and counted."""
