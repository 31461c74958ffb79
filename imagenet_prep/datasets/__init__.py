"""What a data set is, and how it is cut into the shards to make."""
