"""A small generated ImageNet, and the local server that serves it."""
