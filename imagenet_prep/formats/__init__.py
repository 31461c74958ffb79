"""File formats: bytes in, values out. Nothing here knows DATA_DIR, logs or prints."""
