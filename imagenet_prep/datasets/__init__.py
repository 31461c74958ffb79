"""Data sets, and how they are cut into the shards to make."""
