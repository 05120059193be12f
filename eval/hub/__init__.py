"""A results dataset on the Hub that many write to: its index, what is added to it, and one run brought down."""
