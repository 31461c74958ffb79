"""Tasks -> shards: one at a time, or many at once."""
