"""Checks of one shard, of its index, and of a whole set."""
