"""What a record of a recipe's data set says, held against what the recipe promises of every record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from imagenet_prep.checks.examiner import Finding, Seen
from imagenet_prep.images import jpeg, pixels
from imagenet_prep.model import ProblemKind
from imagenet_prep.tfrecord.example import KINDS, BytesList, ExampleError, Feature, Int64List, parse_example

_INCEPTION: Mapping[str, tuple[str, ...]] = {
    "path": ("image/filename",),
    "label": ("image/class/label",),
    **{column: (f"image/{column}",) for column in ("encoded", "height", "width")},
}


@dataclass(frozen=True, slots=True)
class PromiseExaminer:
    """Holds records against a recipe's promise; ``decode``: decodes every JPEG in them too.

    Args:
        features: of each feature by name its "kind", whether it is "optional", and how many "values" (None: any).
        decode: decode images, too.
        holders: of each column the features that hold it: what a feature is called says nothing of that.
    """

    features: Mapping[str, Mapping[str, object]]
    decode: bool = False
    holders: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _INCEPTION)

    def examine(self, data: memoryview, split: str, *, intact: bool) -> Seen:
        """Read a record and check all of it."""
        try:
            features = parse_example(data)
        except ExampleError as error:
            return Seen("", None, 0, (Finding(ProblemKind.BAD_EXAMPLE, str(error)),) if intact else ())
        label = self._held(features, "label", Int64List)
        name = self._held(features, self._name, BytesList)
        boxes = features.get("image/object/bbox/xmin")
        return Seen(
            str(name, "utf-8", "replace") if isinstance(name, bytes | memoryview) else "",
            label if isinstance(label, int) else None,
            len(boxes.values) if boxes else 0,
            self._check(features) if intact else (),
        )

    @property
    def _name(self) -> str:
        """The column by which records are called: the name of the file, or no more than its last part."""
        return "path" if "path" in self.holders else "filename"

    def recorded(self, name: str) -> str:
        """What a record holds of the name of its file."""
        return name if self._name == "path" else name.rpartition("/")[2]

    def _held(self, features: Mapping[str, Feature], column: str, kind: type) -> object:
        """The value of a column, if a feature that holds it is there in this kind; else None."""
        return _first(features, self.holders.get(column, ()), kind)

    def _check(self, features: Mapping[str, Feature]) -> Iterator[Finding]:
        for name, promised in self.features.items():
            feature = features.get(name)
            if feature is None:
                if not promised.get("optional"):
                    yield Finding(ProblemKind.BAD_FIELD, f"{name} is missing")
            elif KINDS[type(feature)] != promised["kind"]:
                expected, got = str(promised["kind"]), KINDS[type(feature)]
                yield Finding(ProblemKind.BAD_FIELD, f"{name} holds {got}, expected {expected}", expected, got)
            elif promised.get("values") == 1 and len(feature.values) != 1:
                count = str(len(feature.values))
                yield Finding(ProblemKind.BAD_FIELD, f"{name} holds {count} values, expected 1", "1", count)
        image = self._held(features, "encoded", BytesList)
        if isinstance(image, memoryview) and jpeg.is_jpeg(image):
            stated = {side: self._held(features, side, Int64List) for side in ("width", "height")}
            yield from check_jpeg(image, stated, decode=self.decode)


def check_jpeg(image: memoryview, stated: Mapping[str, object], *, decode: bool, most: int = 4) -> Iterator[Finding]:
    """Whether an image is a whole JPEG, of at most so many components and of the size that its record states.

    ``stated`` are width and height, each by what the record calls it; None where it says nothing.
    """
    try:
        header = jpeg.read_header(image)
        if header.components > most:
            raise jpeg.ImageError(f"a JPEG of {header.components} components (CMYK); every record says RGB")
        jpeg.check_ends(image)
        if decode:
            pixels.check_decode(image)
    except jpeg.ImageError as error:
        yield Finding(ProblemKind.BAD_IMAGE, str(error))
        return
    for (name, got), expected in zip(stated.items(), (header.width, header.height), strict=True):
        if got not in (None, expected):
            detail = f"{name} of a JPEG: expected {expected}, got {got}"
            yield Finding(ProblemKind.SIZE_MISMATCH, detail, str(expected), str(got))


def holders(settings: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The features that hold each column, by the settings of a recipe's manifest."""
    record = settings.get("record")
    if not isinstance(record, dict):
        return _INCEPTION
    found: dict[str, tuple[str, ...]] = {}
    for feature, each in record.items():
        if isinstance(each, dict):
            column = str(each.get("from"))
            found[column] = (*found.get(column, ()), feature)
    return found


def _first(features: Mapping[str, Feature], names: tuple[str, ...], kind: type) -> object:
    """The one value of the first of these features that is there in this kind; None if there is none."""
    found = (features[name] for name in names if isinstance(features.get(name), kind))
    return next((feature.values[0] for feature in found if len(feature.values) == 1), None)
