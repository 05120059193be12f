"""A dataset folder -> answers -> decisions -> scores -> a results folder and a report."""
