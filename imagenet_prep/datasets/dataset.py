"""Dataset: what a data set knows about making its shards: settings, splits, how to plan them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.planned_set import Asked, PlannedSet
from imagenet_prep.model import Engine, Progress, ShardInfo, StageStatus, State
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout


class Dataset(Protocol):
    """ILSVRC2012, or the data set of a recipe, to be made; ``CheckedDataset`` also checks it.

    Args:
        name: its name.
        splits: the prefixes of shard names, in order.
        options: the settings of its shards.
        set_name: the prefix of its shards' names, if it separates this set from others in the same
            folder; or "".
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - each is described above
    @property
    def splits(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def options(self) -> MakingOptions: ...  # noqa: D102
    @property
    def set_name(self) -> str: ...  # noqa: D102

    # making its shards ----------------------------------------------------------------------------

    def ask(self, layout: Layout, options: Any) -> Asked | None:
        """The inputs of a plan, without a look at any image; None if only ``plan`` can tell."""
        return None

    def plan(
        self,
        records: SetRecords,
        engine: Engine,
        options: Any,
        progress: Progress,
        splits: Collection[str] = (),
    ) -> PlannedSet:
        """Plan all its shards, by ``options`` of its own type; called while the folder is locked.

        With ``splits`` only these, complete or not, as its manifest records them: for shards with
        known digests.

        Raises:
            IncompleteError: images are missing, and that is not allowed.
            InputError: there is nothing to convert, or an input is damaged or differs from the
                recorded one.
            UsageError: an option is invalid.
        """
        ...

    def refuse_without_source(self) -> None:
        """Raise InputError if its shards can't be made again, whichever they are."""
        return

    def refuse_images(self, layout: Layout, infos: Iterable[ShardInfo]) -> None:
        """Raise InputError if its finished shards show that the images are
        not those of the data set.
        """
        return

    # status ---------------------------------------------------------------------------------------

    def stages_before(self, layout: Layout) -> tuple[StageStatus, ...]:
        """The status of the stages before convert; empty if there are none."""
        return ()

    def following(self, records: SetRecords, states: Mapping[str, State]) -> str:
        """The advice for an unfinished convert; ``states`` are the states of the stages."""
        ...
