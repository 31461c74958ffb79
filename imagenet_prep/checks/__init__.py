"""Proving one shard right, or finding all that is wrong with it."""
