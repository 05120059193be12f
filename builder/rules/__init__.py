"""The rules that a source tree and every case in it must keep, and the report of all that do not."""
