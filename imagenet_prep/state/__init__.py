"""Files kept with the shards: the journal of finished shards, the manifest,
and the known digests of raw files.
"""
