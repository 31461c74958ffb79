"""A small ImageNet of its own making, and the local server that hands it out."""
