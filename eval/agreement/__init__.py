"""Judges against judges, against themselves and against people; and what the difference does to a score."""
