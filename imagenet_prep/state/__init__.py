"""What is kept beside the shards: journal, manifest, what a conversion began with."""
