"""One module a command, of the same name."""
