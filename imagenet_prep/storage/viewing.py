"""A file or an object -> its bytes to slice: a memory map, or ranges of the object."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.ranged import RangedView

_AHEAD = 1 << 20  # bytes that are fetched at first of what will be read in order

View = memoryview | RangedView


def view_of(path: Path, *, in_order: bool = False) -> View:
    """The whole of it, read-only; raises InputError as ``map_file`` and RangedView do."""
    if isinstance(path, ObjectPath):
        return RangedView(path, least=_AHEAD if in_order else 0)
    return map_file(path, in_order=in_order)
