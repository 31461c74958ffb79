"""Image files and arrays: bytes in, values out."""
