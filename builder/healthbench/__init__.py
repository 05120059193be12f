"""HealthBench's published JSONL shapes: read, checked, and built as one mirror a file (formats.md 10)."""
