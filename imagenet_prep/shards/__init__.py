"""Shards made of tasks: one by one, many at once."""
