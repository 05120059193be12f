"""A run as a folder of a results dataset, and its recomputation from the decisions alone."""
