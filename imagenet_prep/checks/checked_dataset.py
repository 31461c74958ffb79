"""CheckedDataset: a Dataset that also knows how to check its shards, and its raw data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from imagenet_prep.datasets.dataset import Dataset
from imagenet_prep.model import Engine, Problem, Progress
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_shards import Checked
    from imagenet_prep.checks.examiner import Examiner
    from imagenet_prep.checks.inventory import Inventory
    from imagenet_prep.checks.raw_verdict import RawListing
    from imagenet_prep.checks.verdict import Depth, ReasonedLevel, SplitReport


class Published(NamedTuple):
    """The facts of a whole split of a published data set:
    images, classes, shards, boxes (None: unknown).
    """

    images: int
    classes: int
    shards: int
    boxes: int | None


class SetFindings(Struct, frozen=True):
    """The findings in all shards together, in addition to each report's problems.

    ``flavour``, ``differences`` and ``order`` are as in Verdict.
    """

    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    flavour: str = ""
    differences: tuple[str, ...] = ()
    order: str = "unknown"


class CheckedDataset(Dataset, Protocol):
    """ILSVRC2012, or the data set of a recipe; to be made, or made and known from its manifest or
    its plan.

    Args:
        images: how many images each split should have.
        is_part: whether its manifest records less than the whole, judged by the facts and not by
            its own totals.
        published: the facts of each split of the whole set; None for a set without published
            facts.
        words_of: from a class's wnid or an image's name to words, "" if neither tells; picklable.
        compares_records: whether ``check_set`` needs every record of every shard, and not only each
            shard's totals.
    """

    @property
    def images(self) -> Mapping[str, int]: ...  # noqa: D102 - each is described above
    @property
    def is_part(self) -> bool: ...  # noqa: D102
    @property
    def published(self) -> Mapping[str, Published] | None: ...  # noqa: D102
    @property
    def words_of(self) -> Callable[[str | None, str], str]: ...  # noqa: D102
    @property
    def compares_records(self) -> bool: ...  # noqa: D102

    # checking its raw data ------------------------------------------------------------------------

    def list_raw(
        self, layout: Layout, engine: Engine, options: Any, progress: Progress, depth: Depth | None
    ) -> RawListing:
        """List the images that ``plan`` would cut, and whatever would keep it from that, without
        refusing any.

        ``depth`` is that of the check to come; None: decode what no digest proves.

        Raises:
            InputError: there is nothing to list.
            UsageError: an option or a recipe is wrong.
        """
        ...

    # checking its shards --------------------------------------------------------------------------

    def notes(self, inventory: Inventory, *, is_part: bool) -> Iterator[str]:
        """Notes about the set at hand, before a shard is read."""
        yield from ()

    def examiner(self, foreign: Sequence[AnyPath], *, decode: bool) -> Examiner:
        """The examiner of each record; ``foreign`` are the shards of unknown origin."""
        ...

    def check_set(
        self, inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool
    ) -> SetFindings:
        """The findings in all reports together, including each report's own problems."""
        ...

    def claim(
        self,
        inventory: Inventory,
        totals: Sequence[SplitReport],
        findings: SetFindings,
        *,
        is_part: bool,
    ) -> ReasonedLevel:
        """The level of its shards if all that was read is sound;
        ``is_part``: without a manifest, they are a part.
        """
        ...
