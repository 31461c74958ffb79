"""A data set, as convert and repair see it: where its images are and what is made of them, it plans itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from imagenet_prep.datasets.plan import PlannedSet
from imagenet_prep.model import Engine, Progress
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.compression import Compression


@dataclass(frozen=True, slots=True, kw_only=True)
class MakingOptions:
    """How shards are made, of whatever data set.

    ``read_order`` "sequential" passes over each archive once, holding up to ``memory`` bytes (None: a quarter of what
    is free); "auto" does so where seeking is dear and memory can't hold the archive. ``skip_bad`` leaves bad images
    out, ``overwrite`` makes shards again that were made otherwise. ``consume`` gives the space of the raw data to the
    shards: it is gone in the end.
    """

    compression: Compression = "none"
    skip_bad: bool = False
    overwrite: bool = False
    read_order: Literal["auto", "shuffled", "sequential"] = "auto"
    memory: int | None = None
    consume: bool = False


class Dataset(Protocol):
    """What convert makes shards of: ILSVRC2012, or what a recipe says."""

    @property
    def options(self) -> MakingOptions:
        """How its shards are made, if nothing else is said."""
        ...

    @property
    def recipe_file(self) -> Mapping[str, str] | None:
        """Where the recipe lies, and what its relative paths begin with, to be kept beside the shards."""
        ...

    def plan(self, layout: Layout, engine: Engine, options: Any, progress: Progress) -> PlannedSet:
        """All its shards, to be made as ``options`` (of the type of its own) say; called with the folder held.

        Raises:
            IncompleteError: images are missing, and that is not allowed.
            InputError: there is nothing to convert, or an input is damaged.
            UsageError: an option can't be, or the folder holds another data set.
        """
        ...

    def prepare(self) -> None:
        """Write what the data set itself makes before its first shard."""
