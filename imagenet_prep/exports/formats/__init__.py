"""A module for each format, with its class FormatPacker: the module's name is what the command line calls it."""
