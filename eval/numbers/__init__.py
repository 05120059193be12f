"""Decisions -> case scores -> panel results with intervals -> the summary of a run."""
