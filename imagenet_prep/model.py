"""The values that pass between parts: frozen, slotted, picklable and without I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")
R = TypeVar("R")

OnDamaged: TypeAlias = Literal["refuse", "skip"]
"""The policy for damaged images and records: they are refused, or left out."""

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A count, as the state files hold it."""


class Box(Struct, frozen=True):
    """A bounding box relative to the image: 0 <= xmin <= xmax <= 1, 0 <= ymin <= ymax <= 1.

    Two corners are equal only if rounding made them so: a box of a very large image.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    @property
    def is_inside(self) -> bool:
        """Whether it is as it should be: a record may hold any numbers, also NaN."""
        return 0 <= self.xmin <= self.xmax <= 1 and 0 <= self.ymin <= self.ymax <= 1


class Item(Struct, frozen=True):
    """One image with everything that its record holds, except its bytes.

    ``label`` is 1 to 1000 (0 is background); ``wnid`` is the WordNet id "n01440764"; ``text`` its
    words. In other sets ``label`` counts the classes from 1 (0: none), and ``wnid`` is the name of
    the class. ``columns`` holds all other values by name; None means that there is no value.
    """

    filename: str
    label: int
    wnid: str
    text: str
    boxes: tuple[Box, ...]
    columns: Mapping[str, Any] = {}


class ShardPlan(Struct, frozen=True):
    """One shard's work: rows ``start`` to ``stop`` of the ordered split; a pure function of inputs
    and settings.

    ``fingerprint`` is a digest of its ordered items and of the settings that decide bytes.
    """

    split: str
    index: int
    count: int
    start: int
    stop: int
    fingerprint: str


class ShardInfo(Struct, frozen=True):
    """One finished shard, as the journal records it.

    ``size`` is in bytes. ``digest`` is the SHA-256 (hex) over each record's length and data-CRC
    framing fields, in order. ``set_aside`` names images left out by ``--on-damaged skip``, and
    ``faults`` has the reason for each of them. ``repairs`` names images that were repaired or
    turned, with the change: "n02105855_2933.JPEG (png)". ``file_digest`` is the SHA-256 (hex) of
    the bytes of a compressed file, "" for a plain one: some of its bytes decide no record.
    ``warned`` names images that are unusual though their pixels are whole, with the warning: "a.jpg
    (bytes after the end)".
    """

    name: str
    fingerprint: str
    records: int
    size: int
    digest: str
    set_aside: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    file_digest: str = ""
    warned: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


State: TypeAlias = Literal["done", "partly", "not started", "problems", "unknown"]


class StageStatus(Struct, frozen=True):
    """The progress of a stage: ``detail`` says how much of the expected output exists."""

    stage: str
    state: State
    detail: str


class ProblemKind(str, enum.Enum):
    """The kind of fault that a Problem reports."""

    # raw data
    BAD_IMAGE = "bad-image"
    BAD_ANNOTATION = "bad-annotation"
    # shards
    MISSING_SHARD = "missing-shard"
    STRAY_FILE = "stray-file"
    WRONG_SIZE = "wrong-size"
    TRUNCATED = "truncated"
    BAD_LENGTH = "bad-length"
    BAD_CRC = "bad-crc"
    BAD_EXAMPLE = "bad-example"
    BAD_FIELD = "bad-field"
    WRONG_LABEL = "wrong-label"
    BAD_BOX = "bad-box"
    SIZE_MISMATCH = "size-mismatch"
    ZERO_BASED_LABELS = "zero-based-labels"
    DEVKIT_LABELS = "devkit-labels"
    DUPLICATE = "duplicate"
    MISSING_RECORD = "missing-record"
    EXTRA_RECORD = "extra-record"
    SWAPPED_RECORDS = "swapped-records"
    EXCHANGED_SHARD = "exchanged-shard"
    OTHER_CONVERSION = "other-conversion"
    MISSING_IMAGE = "missing-image"
    MISSING_CLASS = "missing-class"
    MISSING_BOX = "missing-box"
    WRONG_COUNT = "wrong-count"
    WRONG_CONTENT = "wrong-content"
    BAD_INDEX = "bad-index"
    BAD_MANIFEST = "bad-manifest"
    UNFINISHED = "unfinished"
    BAD_COMPRESSION = "bad-compression"
    UNREADABLE = "unreadable"


class Problem(Struct, frozen=True):
    """One finding.

    Args:
        kind: the kind of fault.
        subject: where the fault is: a shard, an archive member, a file.
        detail: the whole finding as a sentence.
        remedy: how to correct it.
        record, offset: number (from 0) and byte offset of the record in a shard; None if it has
            none.
        image: file name of the image; "" if it has none or it is unknown.
        expected, got: the expected and the actual value; "" if neither is a value.
        count: how many findings with one cause this one summarizes.
    """

    kind: ProblemKind
    subject: str
    detail: str
    remedy: str = ""
    record: int | None = None
    offset: int | None = None
    image: str = ""
    expected: str = ""
    got: str = ""
    count: int = 1

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail}" + (f" ({self.remedy})" if self.remedy else "")


class Progress(Protocol):
    """A receiver of a stage's progress; the command line draws it, other callers may ignore it."""

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar: ``total`` units (None: unknown), ``done`` of them finished by an earlier
        run.

        ``unit`` is "B" for bytes (drawn as kB, MB, GB), otherwise a noun such as "images".
        """

    def advance(self, amount: int = 1) -> None:
        """Report ``amount`` more units as done; a negative amount takes units back."""

    def end(self) -> None:
        """Finish the latest bar."""

    def note(self, text: str) -> None:
        """Show one line to the user, above any bar."""


@dataclass(slots=True)
class Silent:
    """A Progress that shows nothing and remembers its notes."""

    notes: list[str] = field(default_factory=list)

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Ignore the bar."""

    def advance(self, amount: int = 1) -> None:
        """Ignore the step."""

    def end(self) -> None:
        """Ignore the end."""

    def note(self, text: str) -> None:
        """Keep the line."""
        self.notes.append(text)


class Done(Struct, Generic[T, R], frozen=True):
    """The outcome of a task that returned."""

    task: T
    value: R


class Failed(Struct, Generic[T], frozen=True):
    """The outcome of a task that raised, or whose worker died too often.
    A failure is a value, not an exception.
    """

    task: T
    error: Exception


Outcomes: TypeAlias = Generator[Done[T, R] | Failed[T], None, None]


class Portable(Generic[T]):
    """A function that can run on other machines: it and its tasks are picklable, and a task may run
    twice at once.

    An engine of several machines sends these functions to the machines, and runs all other
    functions here.
    """

    __slots__ = ()

    def meeting_point(self, task: T, token: str) -> Path | None:
        """A path below the shared folder for a file that an engine writes there;
        None if no folder must be shared.
        """
        raise NotImplementedError

    def inputs(self, task: T) -> Sequence[Path]:
        """Files and folders, in addition to that folder, that a machine requires for the task."""
        return ()

    def sent(self, task: T) -> T:
        """The task in the form that another machine receives."""
        return task

    def undo(self, task: T) -> None:
        """Remove what the task made, on this machine: the task is done again elsewhere."""


class Engine(Protocol):
    """An engine runs tasks. Every task yields exactly one outcome, in any order;
    tasks are consumed lazily.

    A task that is undone (see Portable) and done again yields another one, which takes its place.
    """

    @property
    def workers(self) -> int:
        """The number of tasks that run at once."""
        ...

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """Run ``function`` on every task; closing the generator stops the workers."""
        ...
