"""The page to look at: what the shards hold, counted, drawn and shown."""
