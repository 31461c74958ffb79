"""ImageNetExaminer: checks a record against the tables of ILSVRC2012, its own image, and its
maker's Flavour.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from imagenet_prep.checks.examiner import Finding, Seen, check_jpeg, printable
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.flavours import INCEPTION, Flavour, check_traits, mismatch
from imagenet_prep.model import ProblemKind
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.inception_reader import (
    BoxesError,
    ImageRecord,
    RecordError,
    read_record,
)

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
            finding = Finding(_KINDS[type(error)], str(error))
            return Seen("", None, 0, (finding,) if intact else ())
        name = self.flavour.name_in(record)
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


# the class ----------------------------------------------------------------------------------------


def check_class(record: ImageRecord, split: str, flavour: Flavour, part: Part) -> Iterator[Finding]:
    """Check that file name, label, wnid and words agree; the file name gives the true class."""
    true_wnid = facts.class_of(flavour.name_in(record), split)
    text = None if flavour.has_own_words else record.text
    if true_wnid == record.wnid and _is_class(record, text, part):
        return
    if true_wnid is None and "image/filename" in record.traits.features:
        filename = printable(record.filename)
        yield mismatch(ProblemKind.BAD_FIELD, "image/filename", _NAME_FORMS[split], filename)
    yield from _check_label(record, true_wnid or record.wnid, text, part)


_NAME_FORMS = {
    facts.TRAIN: "<wnid>_<number>.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_<number of eight digits>.JPEG",
}
"""The form of the official file names, by split."""


def _is_class(record: ImageRecord, text: str | None, part: Part) -> bool:
    """Whether label, wnid and words are those of one class of the part; no words are right."""
    wnid = record.wnid
    if wnid is None or part.labels.get(wnid) != record.label:
        return False
    return text is None or text == facts.texts()[wnid]


def _check_label(
    record: ImageRecord, true_wnid: str | None, text: str | None, part: Part
) -> Iterator[Finding]:
    """Compare label, wnid and words with the true class; the first that differs counts."""
    if true_wnid is None:
        if record.label not in part.labels.values():
            yield _no_class_of_part(record, true_wnid, part)
        return
    label = part.labels.get(true_wnid)
    if label is None:
        yield _no_class_of_part(record, true_wnid, part)
        return
    words = facts.texts()[true_wnid]
    if record.label != label:
        kind = _kind_of_wrong_label(record.label, true_wnid, label, part)
        field = f"image/class/label of an image of {true_wnid}"
        yield mismatch(kind, field, str(label), str(record.label))
    elif record.wnid not in (None, true_wnid):
        got = printable(record.wnid or "")
        yield mismatch(ProblemKind.WRONG_LABEL, "image/class/synset", true_wnid, got)
    elif text not in (None, words):
        got = repr(printable(text or ""))
        yield mismatch(ProblemKind.WRONG_LABEL, "image/class/text", repr(words), got)


def _no_class_of_part(record: ImageRecord, true_wnid: str | None, part: Part) -> Finding:
    """The finding about an image whose class or label is none of the part's."""
    labels = part.labels.values()
    expected = f"{min(labels)} to {max(labels)} and a wnid of the classes of {part.name}"
    wnid = printable(true_wnid or "none")
    got = f"{record.label}, {wnid}"
    return mismatch(ProblemKind.WRONG_LABEL, "image/class/label", expected, got)


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
            yield mismatch(ProblemKind.BAD_BOX, f"box {number}", "0 <= min <= max <= 1", corners)
    count_with_label = record.box_labels.count(record.label)
    if count_with_label == len(record.box_labels):
        return
    label_of_class = part.labels.get(record.wnid or "")
    allowed_labels = {record.label, label_of_class}  # two, if the record's is wrong
    for number, label in enumerate(record.box_labels):
        if label not in allowed_labels:
            field = f"label of box {number}"
            yield mismatch(ProblemKind.BAD_BOX, field, str(record.label), str(label))
