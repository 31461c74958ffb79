"""recognise: the first records of some shards -> the Flavour of their maker.

Records of all makers are Examples whose feature names start with "image/" and whose labels count
from 1.

- Inception: ``build_imagenet_data.py`` (tensorflow/models, 2016), slim's copy of it, and the record
  sets made with it for NVIDIA's and Intel's model collections.
- Inception without boxes: several rewrites of that script; most readers of its records use only
  these features.
- TPU: ``imagenet_to_gcs.py`` (tensorflow/tpu, 2017): no words and no boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.examiner import Finding
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import ProblemKind
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.framing import FramingError
from imagenet_prep.tfrecord.inception_reader import (
    CANONICAL,
    ImageRecord,
    RecordError,
    Traits,
    read_record,
)

V = TypeVar("V")

_SAMPLES = 16
"""The number of shards, spread over a set, whose first records decide its flavour."""


class Flavour(Struct, frozen=True):
    """The features in one maker's records.

    Args:
        name: the maker's name.
        traits: the features of each record and their constants; a constant of None may vary.
        has_own_words: image/class/text holds other words than those of 2016.
        has_own_names: image/filename holds a path, or a name without its suffix.
        differences: deviations from the maker's own records; empty without any.
    """

    name: str
    traits: Traits
    has_own_words: bool = False
    has_own_names: bool = False
    differences: tuple[str, ...] = ()

    def name_in(self, record: ImageRecord) -> str:
        """The file name in a record, in its official form."""
        if self.has_own_names:
            return plain_name(record.filename)
        return record.filename


_CONSTANTS = ("colorspace", "channels", "format")
"""The traits with one value in all records."""

_BOXES = frozenset(name for name in CANONICAL.features if name.startswith("image/object/bbox/"))
_WITHOUT_BOXES = CANONICAL.features - _BOXES
_WITHOUT_WORDS = _WITHOUT_BOXES - {"image/class/text"}

INCEPTION = Flavour("Inception", CANONICAL)
WITHOUT_BOXES = Flavour("Inception without boxes", replace(CANONICAL, features=_WITHOUT_BOXES))
TPU = Flavour("TPU", replace(CANONICAL, features=_WITHOUT_WORDS))
FLAVOURS = (INCEPTION, WITHOUT_BOXES, TPU)


def recognise(paths: Sequence[AnyPath]) -> Flavour:
    """The flavour of shards, from the first records of some: a known one, or the nearest with its
    differences.

    Unreadable records are skipped: the check of every record finds them.
    """
    step = max(1, len(paths) // _SAMPLES)
    samples: list[ImageRecord] = []
    for path in paths[::step]:
        samples += _first_record(path)
    if not samples:
        return INCEPTION
    counts = Counter(record.traits.features for record in samples)
    [(features, _)] = counts.most_common(1)
    samples = [record for record in samples if record.traits.features == features]
    nearest = _nearest_flavour(features)
    traits = _shared_traits(samples, features)
    own_words = not any(map(_has_usual_words, samples))
    own_names = not any(map(_has_plain_name, samples))
    differences = _differences(nearest, traits, own_words=own_words, own_names=own_names)
    return Flavour(nearest.name, traits, own_words, own_names, tuple(differences))


def _first_record(path: AnyPath) -> Iterator[ImageRecord]:
    """The first record of a shard, unless it can't be read."""
    try:
        record = next(Shard.open(path).framed(), None)
        if record is not None and record.intact:
            yield read_record(record.data)
    except (InputError, FramingError, ExampleError, RecordError):
        return


def _nearest_flavour(features: frozenset[str]) -> Flavour:
    """The known flavour with the fewest features more or less than these."""

    def distance(flavour: Flavour) -> int:
        return len(flavour.traits.features ^ features)

    return min(FLAVOURS, key=distance)


def _shared_traits(records: Sequence[ImageRecord], features: frozenset[str]) -> Traits:
    """These features, and each constant that all the records share."""
    return Traits(
        features,
        _shared(record.traits.colorspace for record in records),
        _shared(record.traits.channels for record in records),
        _shared(record.traits.format for record in records),
    )


def _has_plain_name(record: ImageRecord) -> bool:
    return record.filename == plain_name(record.filename)


def _has_usual_words(record: ImageRecord) -> bool:
    """Whether the words of a record are those of its wnid, or it has none."""
    if record.text is None:
        return True
    return record.text == facts.texts().get(record.wnid or "")


def plain_name(filename: str) -> str:
    """The official form of a file name: without folders, with its suffix."""
    name = PurePosixPath(filename).name
    if not name or "." in name:
        return name
    return f"{name}.JPEG"


def _shared(constants: Iterable[V | None]) -> V | None:
    """The one value that all share, or None."""
    distinct = set(constants)
    return distinct.pop() if len(distinct) == 1 else None


def _differences(
    nearest: Flavour, traits: Traits, *, own_words: bool, own_names: bool
) -> Iterator[str]:
    """The deviations of traits, words and names from those of the nearest maker."""
    for name in sorted(nearest.traits.features - traits.features):
        yield f"{name} is missing"
    for name in sorted(traits.features - nearest.traits.features):
        yield f"{name} is extra"
    for name in _CONSTANTS:
        expected = getattr(nearest.traits, name)
        got = getattr(traits, name)
        if f"image/{name}" not in traits.features or got == expected:
            continue
        if got is None:
            yield f"image/{name} varies"
        else:
            yield f"image/{name} is {got!r}, not {expected!r}"
    if own_words:
        yield "image/class/text holds other words"
    if own_names:
        yield "image/filename is not the plain file name"


# a record of a flavour ----------------------------------------------------------------------------


def check_traits(record: ImageRecord, flavour: Flavour) -> Iterator[Finding]:
    """Check that every promised feature exists and has the promised constants."""
    promised, traits = flavour.traits, record.traits
    for name in sorted(promised.features - traits.features):
        yield Finding(ProblemKind.BAD_FIELD, f"{name} is missing")
    for name in _CONSTANTS:
        expected = getattr(promised, name)
        got = getattr(traits, name)
        if None not in (expected, got) and got != expected:
            yield mismatch(ProblemKind.BAD_FIELD, f"image/{name}", repr(expected), repr(got))


def mismatch(kind: ProblemKind, field: str, expected: str, got: str) -> Finding:
    """The finding that a field of a record differs from what is expected."""
    shown = got or "an empty text"
    return Finding(kind, f"{field}: expected {expected}, got {shown}", expected, got)
