"""ImageNetExaminer: checks a record against the tables of ILSVRC2012, its own image, and its
maker's Flavour.

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

from imagenet_prep.checks.examiner import Finding, Seen, check_jpeg, printable
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.model import ProblemKind
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.framing import FramingError
from imagenet_prep.tfrecord.inception_reader import (
    CANONICAL,
    BoxesError,
    ImageRecord,
    RecordError,
    Traits,
    read_record,
)

V = TypeVar("V")

SAMPLES = 16
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


_BOXES = frozenset(name for name in CANONICAL.features if name.startswith("image/object/bbox/"))
INCEPTION = Flavour("Inception", CANONICAL)
WITHOUT_BOXES = Flavour(
    "Inception without boxes", replace(CANONICAL, features=CANONICAL.features - _BOXES)
)
TPU = Flavour(
    "TPU", replace(CANONICAL, features=WITHOUT_BOXES.traits.features - {"image/class/text"})
)
FLAVOURS = (INCEPTION, WITHOUT_BOXES, TPU)


def recognise(paths: Sequence[AnyPath]) -> Flavour:
    """The flavour of shards, from the first records of some: a known one, or the nearest with its
    differences.

    Unreadable records are skipped: the check of every record finds them.
    """
    step = max(1, len(paths) // SAMPLES)
    samples = [record for path in paths[::step] for record in _first_record(path)]
    if not samples:
        return INCEPTION
    features = Counter(record.traits.features for record in samples).most_common(1)[0][0]
    samples = [record for record in samples if record.traits.features == features]
    nearest = min(FLAVOURS, key=lambda flavour: len(flavour.traits.features ^ features))
    traits = _shared_traits(samples, features)
    own_words = not any(map(_has_usual_words, samples))
    own_names = not any(map(_has_plain_name, samples))
    differences = tuple(_differences(nearest, traits, own_words=own_words, own_names=own_names))
    return Flavour(nearest.name, traits, own_words, own_names, differences)


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
    return record.text in (None, facts.texts().get(record.wnid or ""))


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


def _shared(constants: Iterable[V | None]) -> V | None:
    """The one value that all share, or None."""
    distinct = set(constants)
    return distinct.pop() if len(distinct) == 1 else None


def _differences(
    nearest: Flavour, traits: Traits, *, own_words: bool, own_names: bool
) -> Iterator[str]:
    for name in sorted(nearest.traits.features - traits.features):
        yield f"{name} is missing"
    for name in sorted(traits.features - nearest.traits.features):
        yield f"{name} is extra"
    for name in ("colorspace", "channels", "format"):
        expected, got = getattr(nearest.traits, name), getattr(traits, name)
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


# records ------------------------------------------------------------------------------------------

_KINDS = {
    BoxesError: ProblemKind.BAD_BOX,
    RecordError: ProblemKind.BAD_FIELD,
    ExampleError: ProblemKind.BAD_EXAMPLE,
}


class ImageNetExaminer(Struct, frozen=True):
    """Compares records with their ``flavour``, and with the classes and labels of ``part``.

    With ``decode``, it decodes every image too.
    """

    flavour: Flavour = INCEPTION
    decode: bool = False
    part: Part = WHOLE

    def examine(self, data: memoryview, split: str, *, intact: bool) -> Seen:
        """Read a record and check all of it."""
        try:
            record = read_record(data)
        except (ExampleError, RecordError) as error:
            return Seen("", None, 0, (Finding(_KINDS[type(error)], str(error)),) if intact else ())
        name = plain_name(record.filename) if self.flavour.has_own_names else record.filename
        findings = self._check(record, split) if intact else ()
        return Seen(name, record.label, len(record.boxes), findings)

    def _check(self, record: ImageRecord, split: str) -> Iterator[Finding]:
        """All faults of a well-formed record of ``split``."""
        if record.traits is not self.flavour.traits:
            yield from check_traits(record, self.flavour)
        yield from check_class(record, split, self.flavour, self.part)
        if record.boxes:
            yield from check_boxes(record, self.part)
        sides = {"image/width": record.width, "image/height": record.height}
        yield from check_jpeg(record.encoded, sides, decode=self.decode, most=3)

    def recorded(self, name: str) -> str:
        """The file name, unchanged."""
        return name


def check_traits(record: ImageRecord, flavour: Flavour) -> Iterator[Finding]:
    """Check that every promised feature exists and has the promised constants."""
    promised, traits = flavour.traits, record.traits
    for name in sorted(promised.features - traits.features):
        yield Finding(ProblemKind.BAD_FIELD, f"{name} is missing")
    for name in ("colorspace", "channels", "format"):
        expected, got = getattr(promised, name), getattr(traits, name)
        if expected is not None and got is not None and got != expected:
            yield _mismatch(ProblemKind.BAD_FIELD, f"image/{name}", repr(expected), repr(got))


# the class ----------------------------------------------------------------------------------------


def check_class(record: ImageRecord, split: str, flavour: Flavour, part: Part) -> Iterator[Finding]:
    """Check that file name, label, wnid and words agree; the file name gives the true class."""
    name = plain_name(record.filename) if flavour.has_own_names else record.filename
    true_wnid = facts.class_of(name, split)
    text = None if flavour.has_own_words else record.text
    if true_wnid == record.wnid and _is_class(record, text, part):
        return
    if true_wnid is None and "image/filename" in record.traits.features:
        yield _mismatch(
            ProblemKind.BAD_FIELD, "image/filename", _NAME_FORMS[split], printable(record.filename)
        )
    yield from _check_label(record, true_wnid or record.wnid, text, part)


_NAME_FORMS = {
    facts.TRAIN: "<wnid>_<number>.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_<number of eight digits>.JPEG",
}
"""The form of the official file names, by split."""


def _is_class(record: ImageRecord, text: str | None, part: Part) -> bool:
    wnid = record.wnid
    return (
        wnid is not None
        and part.labels.get(wnid) == record.label
        and text in (None, facts.texts()[wnid])
    )


def _check_label(
    record: ImageRecord, true_wnid: str | None, text: str | None, part: Part
) -> Iterator[Finding]:
    """Compare label, wnid and words with the true class; the first that differs counts."""
    label = part.labels.get(true_wnid or "")
    if true_wnid is None or label is None:
        if true_wnid is not None or record.label not in part.labels.values():
            yield _no_class_of_part(record, true_wnid, part)
        return
    words = facts.texts()[true_wnid]
    if record.label != label:
        yield _mismatch(
            _kind_of_wrong_label(record.label, true_wnid, label, part),
            f"image/class/label of an image of {true_wnid}",
            str(label),
            str(record.label),
        )
    elif record.wnid not in (None, true_wnid):
        got = printable(record.wnid or "")
        yield _mismatch(ProblemKind.WRONG_LABEL, "image/class/synset", true_wnid, got)
    elif text not in (None, words):
        got = repr(printable(text or ""))
        yield _mismatch(ProblemKind.WRONG_LABEL, "image/class/text", repr(words), got)


def _no_class_of_part(record: ImageRecord, true_wnid: str | None, part: Part) -> Finding:
    """The finding about an image whose class or label is none of the part's."""
    labels = part.labels.values()
    expected = f"{min(labels)} to {max(labels)} and a wnid of {part.name}"
    got = f"{record.label}, {printable(true_wnid or 'none')}"
    return _mismatch(ProblemKind.WRONG_LABEL, "image/class/label", expected, got)


def _kind_of_wrong_label(
    record_label: int | None, wnid: str, label: int, part: Part
) -> ProblemKind:
    """The well-known mistake that explains a wrong label, if any does."""
    if part.first is not None:
        return ProblemKind.WRONG_LABEL
    if record_label == label - 1:
        return ProblemKind.ZERO_BASED_LABELS
    if record_label == facts.devkit_ids()[wnid]:
        return ProblemKind.DEVKIT_LABELS
    return ProblemKind.WRONG_LABEL


# boxes --------------------------------------------------------------------------------------------


def check_boxes(record: ImageRecord, part: Part) -> Iterator[Finding]:
    """Check that every box is inside the image and has the image's label."""
    for number, box in enumerate(record.boxes):
        if not box.is_inside:
            corners = f"x {box.xmin:g} to {box.xmax:g}, y {box.ymin:g} to {box.ymax:g}"
            yield _mismatch(ProblemKind.BAD_BOX, f"box {number}", "0 <= min <= max <= 1", corners)
    if record.box_labels.count(record.label) == len(record.box_labels):
        return
    # two labels, if the record's is wrong
    allowed_labels = {record.label, part.labels.get(record.wnid or "")}
    for number, label in enumerate(record.box_labels):
        if label not in allowed_labels:
            field = f"label of box {number}"
            yield _mismatch(ProblemKind.BAD_BOX, field, str(record.label), str(label))


def _mismatch(kind: ProblemKind, field: str, expected: str, got: str) -> Finding:
    return Finding(kind, f"{field}: expected {expected}, got {got}", expected, got)
