"""A split as one sequence of records: of its finished shards, or straight from the raw data."""
