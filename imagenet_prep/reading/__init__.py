"""Reading finished shards: Shard, ShardSet and Record."""
