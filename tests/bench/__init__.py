"""Benchmarks and what they run on; each is a script, run on demand."""
