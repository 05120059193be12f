"""What a run sends and keeps: requests, the calls that carry them, the journal, and the loop."""
