"""Verdicts in, every number out: vectors that any scorer can be held against, and the published ways to deviate."""
