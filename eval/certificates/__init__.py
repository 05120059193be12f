"""Judge certificates: authored probes with known decisions, what a judge made of them, and which runs that allows."""
