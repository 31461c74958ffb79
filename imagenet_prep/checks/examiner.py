"""Finding: a fault and its place. Examiner: reads one record of a data set and finds its faults."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.images import format_of, grades, jpeg, pixels, png
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.text import beginning
from imagenet_prep.tfrecord.example import (
    KINDS,
    BytesList,
    ExampleError,
    Feature,
    Int64List,
    has_feature_lists,
    parse_example,
    parse_sequence_example,
)
from imagenet_prep.tfrecord.inception import COLUMNS, EDGES
from imagenet_prep.tfrecord.object_features import OBJECT_FEATURES
from imagenet_prep.tfrecord.tolerant_reader import only_value

LIMIT = 20
"""Problems of one kind that are listed for one shard; the rest are counted."""


class Finding(Struct, frozen=True):
    """A fault, without its place."""

    kind: ProblemKind
    detail: str
    expected: str = ""
    got: str = ""


class Place(Struct, frozen=True):
    """The position of a record: number from 0, byte offset of its header,
    file name of its image (if known).
    """

    record: int
    offset: int
    image: str = ""

    def __str__(self) -> str:
        place_words = f"record {self.record} at byte {self.offset}"
        if self.image:
            place_words += f" ({printable(self.image)})"
        return place_words


class Findings:
    """Gathers the problems of one shard, all with the same remedy."""

    def __init__(self, subject: str, remedy: str) -> None:
        self._subject = subject
        self.remedy = remedy
        self.counts: Counter[ProblemKind] = Counter()
        self._listed: list[tuple[Finding, Place | None]] = []

    def __len__(self) -> int:
        return self.counts.total()

    def __contains__(self, kind: ProblemKind) -> bool:
        return kind in self.counts

    def add(self, finding: Finding, at: Place | None = None) -> None:
        """Add a finding, with the place of its record if it is about one."""
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= LIMIT:
            self._listed.append((finding, at))

    def problems(self) -> tuple[Problem, ...]:
        """The listed problems, in order, then one per kind with the number of others."""
        subject, remedy = self._subject, self.remedy
        problems = [problem(finding, subject, remedy, at) for finding, at in self._listed]
        for kind, count in self.counts.items():
            unlisted_count = count - LIMIT
            if unlisted_count > 0:
                detail = f"and {unlisted_count:,} more of this kind"
                problems.append(Problem(kind, subject, detail, remedy, count=unlisted_count))
        return tuple(problems)


def problem(finding: Finding, subject: str, remedy: str, at: Place | None = None) -> Problem:
    """A finding as a Problem of ``subject``."""
    whole = Problem(
        kind=finding.kind,
        subject=subject,
        detail=finding.detail,
        remedy=remedy,
        expected=finding.expected,
        got=finding.got,
    )
    if at is None:
        return whole
    return replace(
        whole,
        detail=f"{at}: {finding.detail}",
        record=at.record,
        offset=at.offset,
        image=printable(at.image),
    )


def printable(text: str) -> str:
    """Text from a file, made safe for a terminal."""
    text = beginning(text, 200)
    if not text.isprintable():
        return repr(text)
    return text


# one record ---------------------------------------------------------------------------------------


class Seen(NamedTuple):  # a tuple is built in a third of the time of a frozen dataclass
    """The content of a record: file name ("" if unknown), label,
    number of boxes, and its faults.
    """

    name: str
    label: int | None
    boxes: int
    findings: Iterable[Finding]


class Examiner(Protocol):
    """Examines one record at a time; picklable."""

    def examine(self, data: memoryview, split: str, *, intact: bool) -> Seen:
        """The content of a record of ``split``; its values are checked only if it is ``intact``."""

    def recorded(self, name: str) -> str:
        """The part of a file's name that a record holds, from a name in an index."""
        ...


def no_words(wnid: str | None, filename: str) -> str:
    """A ``words_of`` for records that hold the words of their classes themselves, or have none."""
    return ""


class PromiseExaminer(Struct, frozen=True):
    """Compares records with a recipe's promise; with ``decode``, decodes every image in them too.

    Args:
        features: by name, each feature's "kind", whether it is "optional", and how many "values"
            (None: any).
        decode: decode images too.
        holders: the features that hold each column: a feature's name does not tell its column.
        classes: the names of boxes by label; empty if there are none.
    """

    features: Mapping[str, Mapping[str, object]]
    decode: bool = False
    holders: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: COLUMNS)
    classes: Mapping[int, str] = {}

    def examine(self, data: memoryview, split: str, *, intact: bool) -> Seen:
        """Read a record and check all of it."""
        try:
            if not self.features and has_feature_lists(data):
                parse_sequence_example(data)
                return Seen("", None, 0, ())
            features = parse_example(data)
        except ExampleError as error:
            if not intact:
                return Seen("", None, 0, ())
            finding = Finding(ProblemKind.BAD_EXAMPLE, str(error))
            return Seen("", None, 0, (finding,))
        label = self._held(features, "label", Int64List)
        if not isinstance(label, int):
            label = None
        encoded_name = self._held(features, self._name, BytesList)
        name = ""
        if isinstance(encoded_name, bytes | memoryview):
            name = str(encoded_name, "utf-8", "replace")
        boxes = features.get("image/object/bbox/xmin")
        box_count = len(boxes.values) if boxes else 0
        findings = self._check(features) if intact else ()
        return Seen(name, label, box_count, findings)

    def _check_masks(
        self, features: Mapping[str, Feature], objects: Mapping[str, Sequence[Any]]
    ) -> Iterator[Finding]:
        """Whether the mask, and that of each object, is a PNG as large as its record states."""
        width = self._held(features, "width", Int64List)
        height = self._held(features, "height", Int64List)
        size = (width, height)
        mask = self._held(features, "mask.encoded", BytesList)
        if isinstance(mask, memoryview):
            yield from _check_mask("its mask", mask, size)
        for number, mask in enumerate(objects.get("boxes.mask", ()), 1):
            if isinstance(mask, bytes | memoryview):
                yield from _check_mask(f"the mask of its object {number}", mask, size)

    @property
    def _name(self) -> str:
        """The column that names records: the whole path of the file, or only its last part."""
        return "path" if "path" in self.holders else "filename"

    def recorded(self, name: str) -> str:
        """The part of a file's name that a record holds."""
        if self._name == "path":
            return name
        return name.rpartition("/")[2]

    def _held(
        self, features: Mapping[str, Feature], column: str, feature_type: type[Feature]
    ) -> object:
        """The value of a column, if a feature of this kind holds it; None otherwise."""
        names = self.holders.get(column, ())
        column_value: object = only_value(features, names, feature_type)
        return column_value

    def _check(self, features: Mapping[str, Feature]) -> Iterator[Finding]:
        for name, promise in self.features.items():
            finding = _compare_feature(name, promise, features.get(name))
            if finding is not None:
                yield finding
        objects = self._objects(features)
        if objects:
            yield from check_objects(objects, self.classes)
            yield from self._check_masks(features, objects)
        image = self._held(features, "encoded", BytesList)
        if not isinstance(image, memoryview):
            return
        image_format = format_of(image)
        if image_format:
            stated = {side: self._held(features, side, Int64List) for side in ("width", "height")}
            check = check_jpeg if image_format == "JPEG" else _check_other
            yield from check(image, stated, decode=self.decode)

    def _objects(self, features: Mapping[str, Feature]) -> dict[str, Sequence[Any]]:
        """The columns of a record's objects, those that it has."""
        objects: dict[str, Sequence[Any]] = {}
        for column, names in self.holders.items():
            feature = features.get(names[0])
            if column in OBJECT_FEATURES and feature is not None:
                objects[column] = feature.values
        return objects


def _compare_feature(
    name: str, promise: Mapping[str, object], feature: Feature | None
) -> Finding | None:
    """The first difference of a record's feature from the promise; None if there is none."""
    if feature is None:
        if promise.get("optional"):
            return None
        return Finding(ProblemKind.BAD_FIELD, f"the feature {name} is missing")
    expected, got = str(promise["kind"]), KINDS[type(feature)]
    if got != expected:
        detail = f"the feature {name} holds {got}, expected {expected}"
        return Finding(ProblemKind.BAD_FIELD, detail, expected, got)
    count = len(feature.values)
    if promise.get("values") == 1 and count != 1:
        detail = f"the feature {name} holds {count} values, expected 1"
        return Finding(ProblemKind.BAD_FIELD, detail, "1", str(count))
    return None


def _check_mask(
    mask_words: str, mask: bytes | memoryview, size: tuple[object, ...]
) -> Iterator[Finding]:
    """Whether a mask is a PNG of a size, width and height; None in it: unknown."""
    try:
        header = png.read_header(mask)
        png.check_ends(mask)
    except jpeg.ImageError as error:
        yield Finding(ProblemKind.BAD_IMAGE, f"{mask_words}: {error}")
        return
    if None not in size and size != header[:2]:
        expected, got = (f"{width} x {height}" for width, height in (size, header[:2]))
        detail = f"size of {mask_words}: expected {expected} pixels, got {got}"
        yield Finding(ProblemKind.SIZE_MISMATCH, detail)


def check_objects(
    columns: Mapping[str, Sequence[Any]], classes: Mapping[int, str]
) -> Iterator[Finding]:
    """Whether the objects of a record, by their columns, are equally many,
    within the image, and of these classes.
    """
    counts = _differing_counts(columns)
    if counts:
        yield Finding(ProblemKind.BAD_BOX, f"the features of its boxes differ in length: {counts}")
        return
    yield from _check_edges(columns)
    yield from _check_box_classes(columns, classes)


def _differing_counts(columns: Mapping[str, Sequence[Any]]) -> str:
    """How many values each column has if these numbers don't fit together; "" if they do."""
    box_counts, point_counts = {}, {}
    for column, column_values in columns.items():
        feature = OBJECT_FEATURES[column]
        if feature.values == "box":
            box_counts[feature.name] = len(column_values)
        elif feature.values == "point":
            point_counts[feature.name] = len(column_values)

    boxes = next(iter(box_counts.values()), 0)
    points = next(iter(point_counts.values()), 0)
    have_equal_boxes = len(set(box_counts.values())) <= 1
    have_equal_points = len(set(point_counts.values())) <= 1
    divide_evenly = boxes == 0 or points % boxes == 0
    if have_equal_boxes and have_equal_points and divide_evenly:
        return ""
    counts = {**box_counts, **point_counts}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _check_edges(columns: Mapping[str, Sequence[Any]]) -> Iterator[Finding]:
    """Whether each box is within the image, and not swapped."""
    for low, high in (EDGES[::2], EDGES[1::2]):
        lower = columns.get(f"boxes.{low}", ())
        upper = columns.get(f"boxes.{high}", ())
        for edges in zip(lower, upper, strict=False):
            if not 0 <= edges[0] <= edges[1] <= 1:
                expected = f"expected 0 <= {low} <= {high} <= 1"
                detail = f"{low}, {high} of a box: {expected}, got {edges[0]}, {edges[1]}"
                yield Finding(ProblemKind.BAD_BOX, detail)


def _check_box_classes(
    columns: Mapping[str, Sequence[Any]], classes: Mapping[int, str]
) -> Iterator[Finding]:
    """Whether each box has a label and a class of the set, and both are of one class."""
    labels = columns.get("boxes.label", ())
    encoded_texts = columns.get("boxes.text", ())
    texts = [str(text, "utf-8", "replace") for text in encoded_texts]
    names = set(classes.values())
    for label, text in itertools.zip_longest(labels, texts):
        is_unknown_label = labels and label not in classes
        is_unknown_text = texts and text not in names
        if is_unknown_label or is_unknown_text:
            yield Finding(ProblemKind.BAD_BOX, _unknown_class(label, text))
        elif labels and texts and text != classes[label]:
            detail = f"a box of label {label}: expected {classes[label]}, got {text}"
            yield Finding(ProblemKind.BAD_BOX, detail)


def _unknown_class(label: int | None, text: str | None) -> str:
    """The finding of a box that is of no class of the set; None: the record lacks that feature."""
    parts = []
    if label is not None:
        parts.append(f"label {label}")
    if text is not None:
        parts.append(f"class {text}")
    return f"a box has {' and '.join(parts)}: the set has no such class"


def check_jpeg(
    image: memoryview, stated: Mapping[str, object], *, decode: bool, most: int = 4
) -> Iterator[Finding]:
    """Whether an image is a complete JPEG, with at most ``most`` components and the size that its
    record states.

    ``stated`` are width and height by the names that the record uses; None if it states nothing.
    """
    try:
        check_coded = pixels.check_decode if decode else grades.leave_coded
        header = grades.judge(image, "decode", check_coded).header
        if header.components > most:
            raise jpeg.ImageError(
                f"the JPEG has {header.components} colour channels, expected at most {most}"
            )
    except jpeg.ImageError as error:
        yield Finding(ProblemKind.BAD_IMAGE, str(error))
        return
    yield from _compare_sides("JPEG", stated, header[:2])


def _check_other(
    image: memoryview, stated: Mapping[str, object], *, decode: bool
) -> Iterator[Finding]:
    """The same for an image of another format."""
    try:
        image_format, width, height, _ = pixels.read_facts(image)
        if decode:
            pixels.decode_rgb(image)
    except jpeg.ImageError as error:
        yield Finding(ProblemKind.BAD_IMAGE, str(error))
        return
    yield from _compare_sides(image_format, stated, (width, height))


def _compare_sides(
    image_format: str, stated: Mapping[str, object], sides: tuple[int, int]
) -> Iterator[Finding]:
    if (*stated.values(),) == sides:  # nearly always
        return
    for (name, got), expected in zip(stated.items(), sides, strict=True):
        if got not in (None, expected):
            detail = f"{name}: expected {expected}, as in its {image_format}, got {got}"
            yield Finding(ProblemKind.SIZE_MISMATCH, detail, str(expected), str(got))
