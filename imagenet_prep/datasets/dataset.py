"""Dataset: a data set as convert and repair see it. It knows the place of its images, and plans its own shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import Asked, PlannedSet
from imagenet_prep.model import Engine, Progress
from imagenet_prep.storage.layout import Layout


class Dataset(Protocol):
    """The source of convert's shards: ILSVRC2012, or a recipe's data set."""

    @property
    def options(self) -> MakingOptions:
        """The default settings of its shards."""
        ...

    @property
    def set_name(self) -> str:
        """The prefix of its shards' names, if it separates this set from others in the same folder; or ""."""
        ...

    @property
    def recipe_file(self) -> Mapping[str, str] | None:
        """The recipe's path, and the base of its relative paths, to be kept with the shards."""
        ...

    def ask(self, layout: Layout, options: Any) -> Asked | None:
        """The inputs of a plan, without a look at any image; None if only ``plan`` can tell."""
        ...

    def plan(self, layout: Layout, engine: Engine, options: Any, progress: Progress) -> PlannedSet:
        """Plan all its shards, by ``options`` of its own type; called while the folder is locked.

        Raises:
            IncompleteError: images are missing, and that is not allowed.
            InputError: there is nothing to convert, or an input is damaged.
            UsageError: an option is invalid, or the folder holds another data set.
        """
        ...

    def prepare(self) -> None:
        """Write the files that the data set needs before its first shard."""
