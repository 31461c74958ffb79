"""SourceSet: a finished set to export. Meaning:
the features of its records that describe an image, by role.
"""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.images import ENDINGS, format_of
from imagenet_prep.model import OnDamaged
from imagenet_prep.reading.indexed import IndexedShard, RecordedShard, find_recorded
from imagenet_prep.reading.shard import Record, Shard
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.reading.values import USUAL, Conventions, any_number
from imagenet_prep.registry import labels_of_classes
from imagenet_prep.state.manifest import Manifest, features_by_column
from imagenet_prep.state.numbering import INCEPTIONS_FIRST, Numbering, box_classes, class_index
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import STATE_NAME, Layout, grown_from, split_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.example import KINDS, parse_example
from imagenet_prep.tfrecord.inception import PROMISE

MOST_CLASSES = 100_000
"""So many names of classes at most go into an export's metadata."""


class SourceShard(Struct, frozen=True):
    """Shard ``index`` of a split: its file with ``size`` bytes, and its entry in the manifest, if
    there is one.

    ``conventions`` are those of the set. ``left_out`` is the number of its damaged records, once
    they are known and ``on_damaged`` leaves them out.
    """

    path: AnyPath
    split: str
    index: int
    size: int
    layout: Layout
    recorded: RecordedShard | None = None
    on_damaged: OnDamaged = "refuse"
    conventions: Conventions = USUAL
    left_out: int = 0

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.name

    @property
    def identity(self) -> list[object]:
        """The values that identify it among shards of this name: its digest, or size and time."""
        if self.recorded:
            return [self.name, self.recorded.digest]
        return [self.name, self.size, self.path.stat().st_mtime_ns]

    def count(self) -> int:
        """The number of its records without those left out,
        from the manifest or from their headers.
        """
        if self.recorded:
            return self.recorded.records - self.left_out
        return sum(1 for _ in Shard.open(self.path).stored()) - self.left_out

    def records(
        self, damaged: Callable[[DamagedRecordError], object] = lambda _: None
    ) -> Iterator[Record]:
        """Every record, its CRC checked, and finally that they are the recorded ones.

        ``damaged`` gets the error of each record that is left out.

        Raises:
            InputError: the shard can't be opened; a record is damaged, which the error names; or
                the records are not those that were written.
        """
        shard = Shard.open(self.path, in_order=True, conventions=self.conventions)
        if self.on_damaged == "skip" and shard.compression == "none":
            yield from self._by_number(damaged)
            return
        lengths, crcs = array("Q"), array("I")
        for framed in shard.followed():
            lengths.append(len(framed.data))
            crcs.append(framed.crc)
            try:
                record = shard.sound(framed)
            except DamagedRecordError as error:
                if self.on_damaged == "refuse":
                    raise
                damaged(error)
            else:
                yield record
        if self.recorded:
            self.recorded.refuse_other(self.path, lengths, crcs)

    def _by_number(self, damaged: Callable[[DamagedRecordError], object]) -> Iterator[Record]:
        """The records of a plain shard: its index finds those after a damaged length too."""
        shard = IndexedShard(self.layout, self.name, self.recorded, conventions=self.conventions)
        for number in range(shard.count()):
            try:
                record = shard.record(number)
            except DamagedRecordError as error:
                damaged(error)
            else:
                yield record


class SourceSet(Struct, frozen=True):
    """A finished set: its folder, its manifest, if it has one, and its shards by split."""

    layout: Layout
    manifest: Manifest | None
    shards: tuple[SourceShard, ...]

    @classmethod
    def load(cls, layout: Layout, on_damaged: OnDamaged = "refuse") -> SourceSet:
        """The set in a folder, made by any tool; its damaged records are refused or left out.

        Raises:
            InputError: no shards exist, the set is not finished, or the folder holds shards without
                a set.
        """
        state = SetState.read(layout.one_set())
        layout, manifest = state.layout, state.manifest
        state.refuse_unusable()
        _refuse_orphans(state)
        splits = _splits_in_order(state)
        if not splits:
            raise InputError(
                f"no shards in {layout.output_dir}",
                "expected files such as train-00000-of-01024",
                "name the folder that holds them",
            )
        lists = any_number(manifest.dataset.features if manifest else {})
        conventions = Conventions(lists, Numbering.find(manifest).first_label)
        shards = []
        for split in splits:
            paths = ShardSet(layout.output_dir, split).paths  # with those that it has grown by
            for index, path in enumerate(paths):
                recorded = find_recorded(manifest, path.name)
                size = state.sizes[path.name]
                shards.append(
                    SourceShard(path, split, index, size, layout, recorded, on_damaged, conventions)
                )
        return cls(layout, manifest, tuple(shards))

    @property
    def numbering(self) -> Numbering:
        """The labels of all classes by name; without a manifest,
        those of ILSVRC2012 unless the records differ.
        """
        labels = labels_of_classes(self.layout, self.manifest)
        if self.manifest is None and not all(_counts_by(labels, shard) for shard in self.shards):
            labels = {}
        return replace(Numbering.find(self.manifest), labels=labels)

    @property
    def splits(self) -> dict[str, list[SourceShard]]:
        """The shards of each split."""
        splits: dict[str, list[SourceShard]] = {}
        for shard in self.shards:
            splits.setdefault(shard.split, []).append(shard)
        return splits


def _splits_in_order(state: SetState) -> list[str]:
    """The splits with shards as the manifest lists them, then others by name;
    the shards that a split has grown by are its own.
    """
    names = set(map(split_of, state.sizes))
    splits = [name for name in names if grown_from(name)[0] not in names - {name}]
    listed = list(state.manifest.dataset.splits) if state.manifest else []
    places = {split: place for place, split in enumerate(listed)}
    return sorted(splits, key=lambda split: (places.get(split, len(listed)), split))


def _counts_by(labels: Mapping[str, int], shard: SourceShard) -> bool:
    """Whether the first record of a shard has the label of its class, if it names both."""
    with contextlib.suppress(InputError):  # the export itself reports the record
        for record in shard.records():
            if record.wnid is None or record.label is None:
                return True
            return labels.get(record.wnid) == record.label
    return True


def names_from_0(names: Mapping[int, str]) -> list[str]:
    """The name of each number from 0 up, "label_N" if it has none;
    none at all if too many, or if names repeat.
    """
    if not names or max(names) > MOST_CLASSES:
        return []
    all_names = [names.get(number, f"label_{number}") for number in range(max(names) + 1)]
    return all_names if len(set(all_names)) == len(all_names) else []


def are_lines(names: Iterable[str]) -> bool:
    """Whether a text file can list these names:
    none is empty, has several lines, or spaces at an end.
    """
    return all(name.strip().splitlines() == [name] for name in names)


CLASSES = "classes.json"
"""The file of an export that has the number of each class, counted from 0, by its name (JSON)."""


def encode_classes(numbers: Mapping[str, int]) -> bytes:
    """The content of that file."""
    return (json.dumps(numbers, indent=1) + "\n").encode()


def _refuse_orphans(state: SetState) -> None:
    """Raise InputError if the folder holds shards that belong to none of its sets:
    they would be left out.
    """
    if state.orphans:
        count = number_of(len(state.orphans), "shard belongs", "shards belong")
        raise InputError(
            f"{state.layout.output_dir}: {count} to none of its sets, {state.orphans[0]} first",
            f"expected the manifest of their set in {state.layout.output_dir / STATE_NAME}",
            "restore it, or move these shards to another folder",
        )


# the values of a record that describe its image ---------------------------------------------------

_NO_IMAGE = "recipes name it by `from: encoded`; a set of numbers has none"


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
        label, wnid, text = record.label, record.wnid, record.text
        index = class_index(label, self.first_label, record)
        name = record.filename or _numbered(record)
        return ImageValues(name, record.encoded, label, index, wnid, text, others)

    def _by_role(self, record: Record) -> ImageValues:
        features = dict(record.features)
        by_role = {role: features.pop(name, None) for role, name in self.features.items()}
        encoded = by_role["encoded"]
        label = by_role.get("label")
        if not isinstance(encoded, bytes):
            raise _not_as_recorded(record, self.features["encoded"])
        if not isinstance(label, int | None):
            raise _not_as_recorded(record, self.features["label"])
        name = _text(by_role.get("path")) or _text(by_role.get("filename")) or _numbered(record)
        wnid = _text(by_role.get("class"))
        text = _text(by_role.get("text"))
        if label is not None:
            wnid = wnid or self.names.get(label)
            text = text or self.texts.get(label)
        index = class_index(label, self.first_label, record)
        return ImageValues(name, encoded, label, index, wnid, text, features)


def _not_as_recorded(record: Record, feature: str) -> InputError:
    return InputError(
        f"{record.shard}: record {record.number}: {feature!r} is not as its manifest says",
        "expected one image, and one number for its label",
    )


def _numbered(record: Record) -> str:
    """The name of an image that has none."""
    return f"{record.number:06d}"


def _text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


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
            f"the records of {manifest.dataset.name} hold no image",
            f"they hold {', '.join(sorted(features))}",
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
    return {feature: names[column] for column in names for feature in features.get(column, ())}


def features_in(record: Record) -> dict[str, Mapping[str, Any]]:
    """The features of a set without a manifest, in the form of a manifest's, judged by one of its
    records.

    Inception's features that this record has are listed as in Inception's format.
    """
    features = record.parse(parse_example)
    kinds = {name: KINDS[type(feature)] for name, feature in features.items()}
    return {
        name: feature for name, feature in PROMISE.items() if kinds.get(name) == feature["kind"]
    }
