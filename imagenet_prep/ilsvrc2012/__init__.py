"""ILSVRC2012: its facts, the copies of its images, and the checks of its records,
as one of several data sets.
"""
