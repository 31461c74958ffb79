"""ImageValues: what a record tells of its image. Meaning: which of its features tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imagenet_prep.errors import Call, InputError, UsageError
from imagenet_prep.reading.shard import Record
from imagenet_prep.state.manifest import ILSVRC2012, Manifest

_NO_IMAGE = "recipes name it by `from: encoded`; a set of numbers has none"


@dataclass(frozen=True, slots=True)
class ImageValues:
    """What a record tells of its image; None where it doesn't.

    ``others`` is the rest, by name: boxes and size, and of a recipe's record every feature that has no role here.
    """

    filename: str
    encoded: bytes | memoryview
    label: int | None
    wnid: str | None
    text: str | None
    others: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Which features tell of an image, by role; none where records are laid out as Inception's are.

    ``first_label`` is the label of the set's first class: labels less that one begin at 0.
    """

    features: tuple[tuple[str, str], ...] = ()
    first_label: int = 1

    def values(self, record: Record) -> ImageValues:
        """What a record tells.

        Raises:
            InputError: a feature is missing, or of another kind; the error names file, record and byte.
        """
        if self.features:
            return self._by_role(record)
        boxes = [[box.xmin, box.ymin, box.xmax, box.ymax] for box in record.boxes]
        others = {"boxes": boxes, "height": record.height, "width": record.width}
        return ImageValues(record.filename, record.encoded, record.label, record.wnid, record.text, others)

    def zero_based(self, label: int, record: Record) -> int:
        """A label counted from 0.

        Raises:
            InputError: it is below the first.
        """
        if label < self.first_label:
            raise InputError(
                f"{record.shard}: record {record.number} has the label {label}",
                f"expected labels from {self.first_label} on",
                Call("verify", record.shard.parent),
            )
        return label - self.first_label

    def _by_role(self, record: Record) -> ImageValues:
        features, roles = dict(record.features), dict(self.features)
        found = {role: features.pop(name, None) for role, name in roles.items()}
        encoded, label = found["encoded"], found.get("label")
        if not isinstance(encoded, bytes) or not (label is None or isinstance(label, int)):
            wrong = roles["label"] if isinstance(encoded, bytes) else roles["encoded"]
            what = f"{record.shard}: record {record.number} has another {wrong!r} than its manifest says"
            raise InputError(what, "expected one image, and one number for its label")
        name = _text(found.get("path")) or _text(found.get("filename")) or f"{record.number:06d}"
        wnid, text = _text(found.get("class")), _text(found.get("text"))
        return ImageValues(name, encoded, label, wnid, text, features)


def _text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


_ROLES = ("encoded", "label", "path", "filename", "class", "text")


def find_meaning(manifest: Manifest | None) -> Meaning:
    """What the records of a set mean; without a manifest they are taken for Inception's.

    Raises:
        UsageError: they hold no image.
    """
    if manifest is None:
        return Meaning()
    if manifest.dataset.kind == ILSVRC2012:
        return Meaning(first_label=min(1, *manifest.dataset.classes.values(), 1))
    settings = manifest.settings
    first, record = settings.get("first_label", 0), settings.get("record")
    if not isinstance(record, dict):
        return Meaning(first_label=first)
    features = {value["from"]: name for name, value in sorted(record.items(), reverse=True)}
    if settings.get("content") != "image" or "encoded" not in features:
        held = ", ".join(sorted(record))
        raise UsageError(f"the records of {manifest.dataset.name} hold no image", f"they hold {held}", _NO_IMAGE)
    return Meaning(tuple((role, features[role]) for role in _ROLES if role in features), first)
