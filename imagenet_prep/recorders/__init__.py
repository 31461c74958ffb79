"""Recorders: how the record of an image is made from its file."""
