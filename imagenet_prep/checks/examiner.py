"""What a data set knows of its own shards: what looks at a record, and what only shows across all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from imagenet_prep.model import Problem, StageStatus, State
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.checks.findings import Finding
    from imagenet_prep.checks.inventory import Inventory
    from imagenet_prep.checks.whole import Checked


class Seen(NamedTuple):  # a tuple is made in a third of the time that a frozen dataclass takes
    """What was seen in a record: file name ("" if unknown), label, number of boxes, and what is wrong."""

    name: str
    label: int | None
    boxes: int
    findings: Iterable[Finding]


class Examiner(Protocol):
    """Looks at one record after the other; picklable."""

    def examine(self, data: memoryview, split: str, *, intact: bool) -> Seen:
        """What a record of ``split`` holds. If it isn't ``intact``, nothing of it is held against it."""

    def recorded(self, name: str) -> str:
        """What a record holds of a file's name, such as an index lists it."""
        ...


class Published(NamedTuple):
    """What is known of a whole split of a published data set: images, classes, shards, boxes (None: not known)."""

    images: int
    classes: int
    shards: int
    boxes: int | None


@dataclass(frozen=True, slots=True)
class SetFindings:
    """What was found in all shards together, beside the problems that each report has.

    ``flavour``, ``differences`` and ``order`` are those of Verdict.
    """

    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    flavour: str = ""
    differences: tuple[str, ...] = ()
    order: str = "unknown"


def no_words(wnid: str | None, filename: str) -> str:
    """A ``words_of`` for records that say themselves what their classes are called, if anything does."""
    return ""


class KnownSet(Protocol):
    """A data set whose shards can be checked: by the facts of ILSVRC2012, or by what a recipe promises."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Its splits in order: what the names of shards begin with."""
        ...

    @property
    def images(self) -> Mapping[str, int]:
        """How many images each split should have."""
        ...

    @property
    def is_part(self) -> bool:
        """Whether its manifest records less than the whole: by the facts, not by what it says that it expects."""
        ...

    @property
    def published(self) -> Mapping[str, Published] | None:
        """What is known of each split of the whole set; None for a set that nobody has published facts of."""
        ...

    @property
    def words_of(self) -> Callable[[str | None, str], str]:
        """The words of a class by its wnid or by the name of an image, "" where they don't tell; picklable."""
        ...

    @property
    def is_known_before_its_end(self) -> bool:
        """Whether its shards can be checked though there is no manifest yet."""
        ...

    @property
    def compares_records(self) -> bool:
        """Whether ``check_set`` needs every record of every shard, and not only what each shard comes to."""
        ...

    def stages_before(self, layout: Layout) -> tuple[StageStatus, ...]:
        """How far the stages before convert have come: nowhere, where there are none."""
        return ()

    def following(self, layout: Layout, states: Mapping[str, State]) -> str:
        """What goes on, where convert has not come to its end; ``states`` are those of the stages."""
        ...

    def refuse_unfinished(self, layout: Layout, damage: str) -> None:
        """Raise InputError if its shards can't be checked before its manifest is there (``damage``: why it is not)."""

    def notes(self, inventory: Inventory, *, is_part: bool) -> Iterator[str]:
        """What is worth knowing of the set at hand before a shard is read."""
        yield from ()

    def examiner(self, foreign: Sequence[AnyPath], *, decode: bool) -> Examiner:
        """What looks at each record; ``foreign`` are the shards where nothing says who made them."""
        ...

    def check_set(self, inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool) -> SetFindings:
        """What all reports show together; theirs are among the problems."""
        ...
