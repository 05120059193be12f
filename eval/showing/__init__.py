"""Tables and displays for people: nothing here decides a number."""
