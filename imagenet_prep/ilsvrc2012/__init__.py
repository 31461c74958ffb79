"""ILSVRC2012: its facts, where its images lie, how its records are checked, as one data set among others."""
