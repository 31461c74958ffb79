"""ImageNetExaminer: a record beside the tables of ILSVRC2012, its own image, and what its maker promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from imagenet_prep.checks.examiner import Seen
from imagenet_prep.checks.findings import Finding, printable
from imagenet_prep.checks.promise import check_jpeg
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.flavours import INCEPTION, Flavour, plain_name
from imagenet_prep.ilsvrc2012.part import WHOLE, Part
from imagenet_prep.model import Box, ProblemKind
from imagenet_prep.tfrecord.example import ExampleError
from imagenet_prep.tfrecord.inception_reader import BoxesError, ImageRecord, RecordError, read_record

_KINDS = {
    BoxesError: ProblemKind.BAD_BOX,
    RecordError: ProblemKind.BAD_FIELD,
    ExampleError: ProblemKind.BAD_EXAMPLE,
}


@dataclass(frozen=True, slots=True)
class ImageNetExaminer:
    """Compares records with ``part``, the classes and labels they should have, and with their ``flavour``.

    ``decode``: decodes every image too.
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
        """Everything that is wrong with a well-formed record of ``split``."""
        if record.traits is not self.flavour.traits:
            yield from check_traits(record, self.flavour)
        yield from check_class(record, split, self.flavour, self.part)
        if record.boxes:
            yield from check_boxes(record, self.part)
        sides = {"image/width": record.width, "image/height": record.height}
        yield from check_jpeg(record.encoded, sides, decode=self.decode, most=3)

    def recorded(self, name: str) -> str:
        """The name itself."""
        return name


def check_traits(record: ImageRecord, flavour: Flavour) -> Iterator[Finding]:
    """Every feature is there that the maker promises, with the constants that it promises."""
    promised, traits = flavour.traits, record.traits
    for name in sorted(promised.features - traits.features):
        yield Finding(ProblemKind.BAD_FIELD, f"{name} is missing")
    for name in ("colorspace", "channels", "format"):
        expected, got = getattr(promised, name), getattr(traits, name)
        if expected is not None and got is not None and got != expected:
            yield _wrong(ProblemKind.BAD_FIELD, f"image/{name}", repr(expected), repr(got))


# the class -----------------------------------------------------------------------------------------------------


def check_class(record: ImageRecord, split: str, flavour: Flavour, part: Part) -> Iterator[Finding]:
    """File name, label, wnid and words belong together; the class that the file name tells is the true one."""
    name = plain_name(record.filename) if flavour.has_own_names else record.filename
    true = facts.class_of(name, split)
    if true == record.wnid and _is_class(record, None if flavour.has_own_words else record.text, part):
        return
    if true is None and "image/filename" in record.traits.features:
        form = "<wnid>_<number>.JPEG" if split == facts.TRAIN else "ILSVRC2012_val_<number of eight digits>.JPEG"
        yield _wrong(ProblemKind.BAD_FIELD, "image/filename", form, printable(record.filename))
    yield from _check_label(record, true or record.wnid, flavour, part)


def _is_class(record: ImageRecord, text: str | None, part: Part) -> bool:
    wnid = record.wnid
    return wnid is not None and part.labels.get(wnid) == record.label and text in (None, facts.texts()[wnid])


def _check_label(record: ImageRecord, true: str | None, flavour: Flavour, part: Part) -> Iterator[Finding]:
    label = part.labels.get(true or "")
    if label is None:
        if true is not None or record.label not in part.labels.values():
            values = part.labels.values()
            expected = f"{min(values)} to {max(values)} and a wnid of {part.name}"
            got = f"{record.label}, {printable(true or 'none')}"
            yield _wrong(ProblemKind.WRONG_LABEL, "image/class/label", expected, got)
        return
    if record.label != label:
        kind = _way(record.label, true or "", label) if part.first is None else ProblemKind.WRONG_LABEL
        yield _wrong(kind, f"image/class/label of an image of {true}", str(label), str(record.label))
    elif record.wnid not in (None, true):
        yield _wrong(ProblemKind.WRONG_LABEL, "image/class/synset", str(true), printable(record.wnid or ""))
    elif record.text is not None and not flavour.has_own_words and record.text != facts.texts()[true or ""]:
        expected = facts.texts()[true or ""]
        yield _wrong(ProblemKind.WRONG_LABEL, "image/class/text", repr(expected), repr(printable(record.text)))


def _way(got: int, wnid: str, label: int) -> ProblemKind:
    """In which of the well-known ways a label is wrong, if it is one of them."""
    if got == label - 1:
        return ProblemKind.ZERO_BASED_LABELS
    return ProblemKind.DEVKIT_LABELS if got == facts.devkit_ids()[wnid] else ProblemKind.WRONG_LABEL


# boxes -----------------------------------------------------------------------------------------------


def check_boxes(record: ImageRecord, part: Part) -> Iterator[Finding]:
    """Every box lies within the image and carries the image's label."""
    for number, box in enumerate(record.boxes):
        if not _is_sound(box):
            corners = f"x {box.xmin:g} to {box.xmax:g}, y {box.ymin:g} to {box.ymax:g}"
            yield _wrong(ProblemKind.BAD_BOX, f"box {number}", "0 <= min <= max <= 1", corners)
    if record.box_labels.count(record.label) != len(record.box_labels):
        right = {record.label, part.labels.get(record.wnid or "")}  # these differ where the record's is wrong
        for number, label in enumerate(record.box_labels):
            if label not in right:
                yield _wrong(ProblemKind.BAD_BOX, f"label of box {number}", str(record.label), str(label))


def _is_sound(box: Box) -> bool:  # false for NaN too
    return 0 <= box.xmin <= box.xmax <= 1 and 0 <= box.ymin <= box.ymax <= 1


def _wrong(kind: ProblemKind, what: str, expected: str, got: str) -> Finding:
    return Finding(kind, f"{what}: expected {expected}, got {got}", expected, got)
