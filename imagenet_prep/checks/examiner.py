"""Finding: something wrong, and its place. Examiner and KnownSet: what a data set knows of its own shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from imagenet_prep.model import Problem, ProblemKind, StageStatus, State
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.checks.inventory import Checked, Inventory

LIMIT = 20
"""Problems of one kind that are spelled out for one shard; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, wherever it is."""

    kind: ProblemKind
    detail: str
    expected: str = ""
    got: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a shard a record is: number from 0, byte offset of its header, file name of its image where known."""

    record: int
    offset: int
    image: str = ""

    def __str__(self) -> str:
        return f"record {self.record} at byte {self.offset}" + (f" ({printable(self.image)})" if self.image else "")


class Findings:
    """Gathers the problems of one shard; the same remedy helps against all of them."""

    def __init__(self, subject: str, remedy: str) -> None:
        self._subject = subject
        self._remedy = remedy
        self.counts: Counter[ProblemKind] = Counter()
        self._problems: list[Problem] = []

    def __len__(self) -> int:
        return self.counts.total()

    def __contains__(self, kind: ProblemKind) -> bool:
        return kind in self.counts

    def add(self, found: Finding, at: Place | None = None) -> None:
        """Take one more finding, and the place of its record if it is about one."""
        self.counts[found.kind] += 1
        if self.counts[found.kind] <= LIMIT:
            self._problems.append(problem(found, self._subject, self._remedy, at))

    def problems(self) -> tuple[Problem, ...]:
        """Those spelled out, as they were found, then one a kind that says how many more there are."""
        rest = tuple(
            Problem(kind, self._subject, f"and {count - LIMIT:,} more of this kind", self._remedy, count=count - LIMIT)
            for kind, count in self.counts.items()
            if count > LIMIT
        )
        return tuple(self._problems) + rest


def problem(found: Finding, subject: str, remedy: str, at: Place | None = None) -> Problem:
    """A finding about a subject, in words and in values."""
    detail = found.detail if at is None else f"{at}: {found.detail}"
    record, offset, image = (None, None, "") if at is None else (at.record, at.offset, printable(at.image))
    return Problem(found.kind, subject, detail, remedy, record, offset, image, found.expected, found.got)


def printable(text: str) -> str:
    """Text from a file in a form that can do a terminal no harm."""
    short = text if len(text) <= 200 else text[:200] + "..."
    return short if short.isprintable() else repr(short)


# what a data set knows -----------------------------------------------------------------------------------------------


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
