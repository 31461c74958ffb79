"""Who makes records of ILSVRC2012, what each maker promises, and whose records these are.

All of them are Examples whose features begin with "image/" and whose labels count from 1.

- Inception: ``build_imagenet_data.py`` (tensorflow/models, 2016), slim's copy of it, and the record sets that NVIDIA's
  and Intel's model collections have their users make with it.
- Inception without boxes: several rewrites of that script, and what most readers of its records take.
- TPU: ``imagenet_to_gcs.py`` (tensorflow/tpu, 2017): no words and no boxes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.framing import FramingError
from imagenet_prep.tfrecord.inception_reader import CANONICAL, ImageRecord, RecordError, Traits, read_record

V = TypeVar("V")

SAMPLES = 16
"""So many shards, spread over a set, are asked for their first record."""


@dataclass(frozen=True, slots=True)
class Flavour:
    """What a maker's records hold.

    Args:
        name: of the maker.
        traits: the features that each record has and the constants in them; a constant that is None is not promised.
        has_own_words: image/class/text holds other words than those of 2016.
        has_own_names: image/filename holds a path, or a name without its suffix.
        differences: in what such records depart from what that maker promises; empty for the maker's own.
    """

    name: str
    traits: Traits
    has_own_words: bool = False
    has_own_names: bool = False
    differences: tuple[str, ...] = ()


_BOXES = frozenset(name for name in CANONICAL.features if name.startswith("image/object/bbox/"))
INCEPTION = Flavour("Inception", CANONICAL)
WITHOUT_BOXES = Flavour("Inception without boxes", dataclasses.replace(CANONICAL, features=CANONICAL.features - _BOXES))
TPU = Flavour("TPU", dataclasses.replace(CANONICAL, features=WITHOUT_BOXES.traits.features - {"image/class/text"}))
FLAVOURS = (INCEPTION, WITHOUT_BOXES, TPU)


def recognise(paths: Sequence[AnyPath]) -> Flavour:
    """The flavour of shards, told by the first records of some of them: a known one, or the nearest and how it differs.

    What can't be read is passed over: it is found when every record is looked at.
    """
    step = max(1, len(paths) // SAMPLES)
    samples = [record for path in paths[::step] for record in _first_record(path)]
    if not samples:
        return INCEPTION
    features = Counter(record.traits.features for record in samples).most_common(1)[0][0]
    samples = [record for record in samples if record.traits.features == features]
    nearest = min(FLAVOURS, key=lambda flavour: len(flavour.traits.features ^ features))
    traits = Traits(
        features,
        _shared(record.traits.colorspace for record in samples),
        _shared(record.traits.channels for record in samples),
        _shared(record.traits.format for record in samples),
    )
    own_words = not any(record.text in (None, facts.texts().get(record.wnid or "")) for record in samples)
    own_names = not any(record.filename == plain_name(record.filename) for record in samples)
    differences = tuple(_differences(nearest, traits, own_words=own_words, own_names=own_names))
    return Flavour(nearest.name, traits, own_words, own_names, differences)


def plain_name(filename: str) -> str:
    """The official form of a file name: without folders, with its suffix."""
    name = PurePosixPath(filename).name
    return name if not name or "." in name else f"{name}.JPEG"


def _first_record(path: AnyPath) -> Iterator[ImageRecord]:
    try:
        record = next(Shard.open(path).framed(), None)
        if record is not None and record.intact:
            yield read_record(record.data)
    except (InputError, FramingError, ExampleError, RecordError):
        return


def _shared(values: Iterable[V | None]) -> V | None:
    """The one value that all have, or None."""
    every = set(values)
    return every.pop() if len(every) == 1 else None


def _differences(nearest: Flavour, traits: Traits, *, own_words: bool, own_names: bool) -> Iterator[str]:
    for name in sorted(nearest.traits.features - traits.features):
        yield f"{name} is missing"
    for name in sorted(traits.features - nearest.traits.features):
        yield f"{name} is there too"
    for name in ("colorspace", "channels", "format"):
        expected, got = getattr(nearest.traits, name), getattr(traits, name)
        if f"image/{name}" in traits.features and got != expected:
            yield f"image/{name} is {got!r}, not {expected!r}" if got is not None else f"image/{name} varies"
    if own_words:
        yield "image/class/text holds other words"
    if own_names:
        yield "image/filename holds more or less than the name of the file"
