"""ImageValues: what a record tells of its image. Meaning: which of its features tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.reading.shard import Record
from imagenet_prep.state.manifest import ILSVRC2012, Manifest
from imagenet_prep.tfrecord.example import KINDS, parse_example
from imagenet_prep.tfrecord.inception import PROMISE

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
                command("verify", record.shard.parent),
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


_INCEPTION = {
    "encoded": "image/encoded",
    "label": "image/class/label",
    "filename": "image/filename",
    "class": "image/class/synset",
    "text": "image/class/text",
}
_ROLES = (*_INCEPTION, "path")


def find_meaning(manifest: Manifest | None) -> Meaning:
    """What the records of a set mean; without a manifest they are taken for Inception's.

    Raises:
        UsageError: they hold no image.
    """
    if manifest is None:
        return Meaning()
    if manifest.dataset.kind == ILSVRC2012:
        return Meaning(first_label=min(1, *manifest.dataset.classes.values(), 1))
    first = manifest.settings.get("first_label", 0)
    if not isinstance(manifest.settings.get("record"), dict):
        return Meaning(first_label=first)
    roles = find_roles(manifest)
    if "encoded" not in roles:
        held = ", ".join(sorted(manifest.dataset.features))
        raise UsageError(f"the records of {manifest.dataset.name} hold no image", f"they hold {held}", _NO_IMAGE)
    return Meaning(tuple(roles.items()), first)


def find_roles(manifest: Manifest | None) -> dict[str, str]:
    """The feature of each role that one has in the records of a set; without a manifest, those of Inception."""
    record = manifest.settings.get("record") if manifest and manifest.dataset.kind != ILSVRC2012 else None
    if not isinstance(record, dict):
        return dict(_INCEPTION)
    features = {value["from"]: name for name, value in sorted(record.items(), reverse=True)}
    return {role: features[role] for role in _ROLES if role in features}


def held_by(record: Record) -> dict[str, Mapping[str, Any]]:
    """What the records of a set without a manifest hold, as a manifest would say it, by one of them.

    Of Inception's features, those that are there, and as Inception's are.
    """
    found = {name: KINDS[type(feature)] for name, feature in record.parse(parse_example).items()}
    return {name: told for name, told in PROMISE.items() if found.get(name) == told["kind"]}
