"""Finished shards, read."""
