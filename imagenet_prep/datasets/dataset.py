"""A data set, as convert and repair see it: where its images are and what is made of them, it plans itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from imagenet_prep.datasets.plan import PlannedSet, PlannedSplit
from imagenet_prep.model import Engine, Progress
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.compression import Compression


@dataclass(frozen=True, slots=True, kw_only=True)
class MakingOptions:
    """How shards are made, of whatever data set.

    ``read_order`` "sequential" passes over each archive once, holding up to ``memory`` bytes (None: a quarter of what
    is free); "auto" does so where seeking is dear and memory can't hold the archive. ``skip_bad`` leaves bad images
    out, ``overwrite`` makes shards again that were made otherwise.
    """

    compression: Compression = "none"
    skip_bad: bool = False
    overwrite: bool = False
    read_order: Literal["auto", "shuffled", "sequential"] = "auto"
    memory: int | None = None


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


class Remakeable(Protocol):
    """A data set that was made, by its manifest: how the same shards are made again."""

    def refuse_without_source(self) -> None:
        """Raise InputError if it is known at once that nothing can be made again."""

    def plan_again(
        self, layout: Layout, engine: Engine, manifest: Manifest, splits: Collection[str], progress: Progress
    ) -> tuple[MakingOptions, list[PlannedSplit]]:
        """Some splits, planned as the manifest says.

        Raises:
            InputError: the inputs are not there, or not those of then; or the manifest can't be understood.
        """
        ...
