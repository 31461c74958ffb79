"""Reads and writes bytes, on disks and in object stores."""
