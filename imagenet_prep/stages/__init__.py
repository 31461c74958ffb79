"""The stages: one module per command, with the same name."""
