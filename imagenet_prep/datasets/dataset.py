"""A data set, as convert and repair see it: where its images are and what is made of them, it plans itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import Asked, PlannedSet
from imagenet_prep.model import Engine, Progress
from imagenet_prep.storage.layout import Layout


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

    def ask(self, layout: Layout, options: Any) -> Asked | None:
        """What a plan would be made from, seen without a look at any image; None: only ``plan`` tells."""
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
