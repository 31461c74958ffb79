"""What a record says, held against the tables of ILSVRC2012 and against its own image."""

from __future__ import annotations

from collections.abc import Iterator

from imagenet_prep import ilsvrc2012
from imagenet_prep.checks.findings import printable
from imagenet_prep.formats import jpeg, pixels
from imagenet_prep.formats.inception_reader import ImageRecord
from imagenet_prep.model import Box, ProblemKind

Finding = tuple[ProblemKind, str]


def check_content(record: ImageRecord, split: str, *, decode: bool) -> Iterator[Finding]:
    """Everything that is wrong with a well-formed record of ``split``; ``decode``: decode its image too."""
    yield from check_class(record)
    yield from check_filename(record, split)
    yield from check_boxes(record)
    yield from check_image(record, decode=decode)


def check_class(record: ImageRecord) -> Iterator[Finding]:
    """Label, wnid and words belong together."""
    if not 1 <= record.label <= ilsvrc2012.CLASSES:
        yield ProblemKind.WRONG_LABEL, f"image/class/label: expected 1 to {ilsvrc2012.CLASSES}, got {record.label}"
        return
    wnid = ilsvrc2012.synsets()[record.label - 1]
    for name, expected, got in (("synset", wnid, record.wnid), ("text", ilsvrc2012.texts()[wnid], record.text)):
        if got != expected:
            yield (
                ProblemKind.WRONG_LABEL,
                f"image/class/{name}: expected {expected!r} for label {record.label}, got {printable(got)!r}",
            )


def check_filename(record: ImageRecord, split: str) -> Iterator[Finding]:
    """The file name is one of the split's, and of an image of the class that the record names."""
    if split == ilsvrc2012.TRAIN:
        form, expected = "<wnid>_<number>.JPEG", ilsvrc2012.train_wnid(record.filename)
    else:
        number = ilsvrc2012.validation_number(record.filename)
        form = "ILSVRC2012_val_<number of eight digits>.JPEG"
        expected = ilsvrc2012.validation_wnids()[number - 1] if number else None
    if expected is None:
        yield ProblemKind.BAD_FIELD, f"image/filename: expected {form}, got {printable(record.filename)!r}"
    elif expected != record.wnid:
        yield ProblemKind.WRONG_LABEL, f"the image is of {expected}, but labelled {printable(record.wnid)}"


def check_boxes(record: ImageRecord) -> Iterator[Finding]:
    """Every box lies within the image and carries the image's label."""
    for number, (box, label) in enumerate(zip(record.boxes, record.box_labels, strict=True)):
        if not _is_sound(box):
            corners = f"x {box.xmin:g} to {box.xmax:g}, y {box.ymin:g} to {box.ymax:g}"
            yield ProblemKind.BAD_BOX, f"box {number}: expected 0 <= min <= max <= 1, got {corners}"
        if label != record.label:
            yield ProblemKind.BAD_BOX, f"box {number}: expected label {record.label}, got {label}"


def _is_sound(box: Box) -> bool:  # false for NaN too
    return 0 <= box.xmin <= box.xmax <= 1 and 0 <= box.ymin <= box.ymax <= 1


def check_image(record: ImageRecord, *, decode: bool) -> Iterator[Finding]:
    """The image is a whole JPEG of one or three components, of the size that the record says."""
    try:
        header = jpeg.read_header(record.encoded)
        if header.components == 4:
            raise jpeg.ImageError("a JPEG of 4 components (CMYK); every record says RGB")
        jpeg.check_ends(record.encoded)
        if decode:
            pixels.check_decode(record.encoded)
    except jpeg.ImageError as error:
        yield ProblemKind.BAD_IMAGE, str(error)
        return
    if (record.width, record.height) != (header.width, header.height):
        yield (
            ProblemKind.SIZE_MISMATCH,
            f"image/width x image/height: the JPEG has {header.width} x {header.height}, "
            f"the record says {record.width} x {record.height}",
        )
