"""What ``init`` does: a folder as people keep it -> the recipe that reads it. Nothing below knows
this room.
"""
