"""The values of a record that describe its image, found by the roles of its features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.images import ENDINGS, format_of
from imagenet_prep.reading.damage_words import remedy
from imagenet_prep.reading.record import Record
from imagenet_prep.state.manifest import Manifest, features_by_column
from imagenet_prep.state.numbering import INCEPTIONS_FIRST, Numbering, box_classes, class_index
from imagenet_prep.tfrecord.example import KINDS, parse_example
from imagenet_prep.tfrecord.inception import PROMISE

_NO_IMAGE = Hint(
    "export to arrayrecord, which accepts any record; or, for images: in the recipe, set "
    "`content: image`, add the feature `image: encoded` to `record`, remove features that images "
    "don't have, and ",
    CONVERT_AGAIN,
)


class ImageValues(Struct, frozen=True):
    """The values of a record that describe its image; None for those it lacks.

    ``class_index`` is the label counted from 0. ``wnid`` is the name of the class, and ``text`` its
    words: where the record has neither, those of the manifest. ``others`` is the rest, by name:
    boxes and size, and every feature of a recipe's record without a role here.
    """

    filename: str
    encoded: bytes | memoryview
    label: int | None
    class_index: int | None
    wnid: str | None
    text: str | None
    others: Mapping[str, Any]

    @property
    def true_ending(self) -> str:
        """The ending that its file name lacks: ".jpg" for "a.gif" that was made a JPEG,
        "" for "a.JPEG".
        """
        endings = ENDINGS.get(format_of(self.encoded[:16]), ())
        if not endings or self.filename.lower().endswith(endings):
            return ""
        return endings[0]


class Meaning(Struct, frozen=True):
    """The features that describe an image, by role; none for records in Inception's format.

    ``first_label`` is the label of the set's first class; ``names`` are the names of its classes by
    label, ``texts`` the words of those whose words are not their names. ``others`` are the features
    of a recipe's records without a role, as its manifest lists them: they keep their names, also
    where an export has values of such a name.
    """

    features: Mapping[str, str] = {}
    first_label: int = INCEPTIONS_FIRST
    names: Mapping[int, str] = {}
    texts: Mapping[int, str] = {}
    others: Mapping[str, Mapping[str, Any]] = {}

    def values(self, record: Record) -> ImageValues:
        """The values of a record.

        Raises:
            InputError: a feature is missing, or has another kind, or the label is below the first;
                the error names file, record and byte.
        """
        if self.features:
            return self._by_role(record)
        boxes = [[box.xmin, box.ymin, box.xmax, box.ymax] for box in record.boxes]
        others = {"boxes": boxes, "height": record.height, "width": record.width}
        label = record.label
        index = class_index(label, self.first_label, record, record.shard.parent)
        name = record.filename or _numbered(record)
        return ImageValues(name, record.encoded, label, index, record.wnid, record.text, others)

    def _by_role(self, record: Record) -> ImageValues:
        features = dict(record.features)
        by_role = {role: features.pop(name, None) for role, name in self.features.items()}
        encoded = by_role["encoded"]
        label = by_role.get("label")
        if not isinstance(encoded, bytes):
            raise _not_as_recorded(record, self.features["encoded"], "one image file")
        if not isinstance(label, int | None):
            raise _not_as_recorded(record, self.features["label"], "one whole number as the label")
        name = _text(by_role.get("path")) or _text(by_role.get("filename"))
        if not name:
            name = _numbered(record)
        wnid = _text(by_role.get("class"))
        text = _text(by_role.get("text"))
        if label is not None:
            wnid = wnid or self.names.get(label)
            text = text or self.texts.get(label)
        index = class_index(label, self.first_label, record, record.shard.parent)
        return ImageValues(name, encoded, label, index, wnid, text, features)


def _not_as_recorded(record: Record, feature: str, content: str) -> InputError:
    problem = f"does not hold {content}" if feature in record.features else "is missing"
    return InputError(
        f"{record.place}: the feature {feature!r} {problem}",
        f"expected {content} in it, as manifest.json of this set says",
        remedy(record.shard),
    )


def _numbered(record: Record) -> str:
    """The name of an image that has none."""
    return f"{record.number:06d}"


def _text(value: object) -> str | None:
    if not isinstance(value, bytes):
        return None
    return value.decode("utf-8", "replace")


_ROLES = ("encoded", "label", "filename", "class", "text", "path")


def find_meaning(manifest: Manifest | None) -> Meaning:
    """The meaning of a set's records; without a manifest they are read as Inception's.

    Raises:
        UsageError: the records hold no image.
    """
    numbering = Numbering.find(manifest)
    if manifest is None or not isinstance(manifest.settings.get("record"), dict):
        return Meaning(first_label=numbering.first_label)
    roles = find_roles(manifest)
    features = manifest.dataset.features
    if "encoded" not in roles:
        raise UsageError(
            f'the records of the set "{manifest.dataset.name}" hold no image file',
            f"their features are {', '.join(sorted(features))}",
            _NO_IMAGE,
        )
    texts = {numbering.labels[name]: text for name, text in numbering.texts.items()}
    with_role = set(roles.values())
    without_role = {name: features[name] for name in features if name not in with_role}
    return Meaning(roles, numbering.first_label, numbering.names, texts, without_role)


def find_roles(manifest: Manifest | None) -> dict[str, str]:
    """The feature for each role in the records of a set; without a manifest, those of Inception."""
    features = features_by_column(manifest.settings if manifest else {})
    return {role: min(features[role]) for role in _ROLES if role in features}


def find_object_names(manifest: Manifest | None) -> dict[str, dict[int, str]]:
    """The names of labels in the features with several labels per image:
    of its classes, or of its objects.
    """
    if manifest is None:
        return {}
    names = {
        "label.list": Numbering.find(manifest).names,
        "boxes.label": box_classes(manifest.settings),
    }
    features = features_by_column(manifest.settings)
    names_by_feature: dict[str, dict[int, str]] = {}
    for column, names_by_label in names.items():
        for feature in features.get(column, ()):
            names_by_feature[feature] = names_by_label
    return names_by_feature


def features_in(record: Record) -> dict[str, Mapping[str, Any]]:
    """The features of a set without a manifest, in the form of a manifest's, judged by one of its
    records.

    Inception's features that this record has are listed as in Inception's format.
    """
    features = record.parse(parse_example)
    kinds = {name: KINDS[type(feature)] for name, feature in features.items()}
    promised: dict[str, Mapping[str, Any]] = {}
    for name, feature in PROMISE.items():
        if kinds.get(name) == feature["kind"]:
            promised[name] = feature
    return promised
