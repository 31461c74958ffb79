"""The report page: the contents of the shards, counted, drawn and shown."""
