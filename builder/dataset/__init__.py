"""A dataset folder: typed tables, files written whole, digests, and the verification of all of them."""
