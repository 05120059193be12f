"""Audits of a judge's way of working: one call a case against one a rubric item, and where a score's variance lies."""
