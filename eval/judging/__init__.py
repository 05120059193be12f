"""What models are told, what a judge's reply says, and what a run is."""
