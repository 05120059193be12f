"""What describes a dataset folder to others: its card, and files in the forms that other programs read."""
