"""Source files -> a verified dataset folder -> the Hub."""
