"""The records of finished shards in other containers."""
