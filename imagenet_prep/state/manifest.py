"""Manifest: the record of a finished conversion, saved and loaded;
and checked.json: the digests of raw files.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypedDict

from msgspec import Struct, convert, to_builtins
from msgspec.json import decode
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Count, ShardInfo
from imagenet_prep.state.journal import ShardEntry, canonical, info_dict, many_objects
from imagenet_prep.storage.files import find_plain, load_json, save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord import crc32c, inception

ALGORITHMS = ("md5", "sha256", "crc32c")


def seen_digests(layout: Layout, filename: str, path: AnyPath) -> dict[str, str]:
    """The known digests (hex) of ``path``, by algorithm; none if it has changed since or does not
    exist.

    ``filename`` is its name in checked.json: the path below the raw folder.
    """
    checked = load_json(layout.checked_path)
    entry = checked.get(filename) if isinstance(checked, dict) else None
    if not isinstance(entry, dict) or not path.exists():
        return {}
    stat = path.stat()
    if (entry.get("size"), entry.get("mtime_ns")) != (stat.st_size, stat.st_mtime_ns):
        return {}
    return {name: entry[name] for name in ALGORITHMS if isinstance(entry.get(name), str)}


SCHEMA = 1
"""The schema of the manifest."""

MOST_BYTES = 1 << 33
"""The largest manifest file that is read; a million shards need 300 MB."""

ILSVRC2012: Final = "ILSVRC2012"
RECIPE: Final = "recipe"
"""The kinds of data sets: a kind decides how a set is checked and made again."""


class DatasetEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A manifest's entry for its data set.

    ``kind`` decides how it is checked and made again; ``splits`` are in order, each the prefix of
    its shards' names. ``features`` are those of every record: by name its "kind", whether it is
    "optional", and how many "values" it has (None: any number). ``turned`` counts, by split, the
    images that were turned upright. ``classes`` has the label of each class by its name, those
    without an image too; none for ILSVRC2012 with all classes and official labels. ``texts`` has
    the words of the classes of a recipe, if they are not their names.
    """

    kind: Literal["ILSVRC2012", "recipe"]
    name: str
    splits: tuple[str, ...]
    features: Mapping[str, Mapping[str, Any]]
    turned: Mapping[str, Count]
    classes: Mapping[str, Count] = {}
    texts: Mapping[str, str] = {}


class _Feature(TypedDict):
    kind: str
    optional: bool
    values: Count | None


class SplitTotals(Struct, frozen=True, omit_defaults=True):
    """The totals of one split: images, classes, boxes, shards; ``expected`` images in the whole
    data set.

    ``warned`` counts the images that are unusual though their pixels are whole, ``unlabelled``
    those without a label; a file without them has none.
    """

    images: Count
    expected: Count
    classes: Count
    boxes: Count
    shards: Count
    warned: Count = 0
    unlabelled: Count = 0


class Manifest(Struct, frozen=True):
    """The record of a conversion. ``settings`` are those that decide the bytes;
    ``shards`` is by name.
    """

    version: str
    dataset: DatasetEntry
    settings: dict[str, Any]
    sources: dict[str, Any]
    totals: dict[str, SplitTotals]
    shards: dict[str, ShardInfo]

    def save(self, path: AnyPath) -> bool:
        """Write it atomically, sealed, unless the file already holds it;
        returns whether it was written.
        """
        head, lines = self._head(), self._lines()
        shards = b",".join(b"\n    " + line for line in lines)
        text = json.dumps(head, indent=2, sort_keys=True).removesuffix(_END).encode()
        return save_bytes(
            path, b"".join((text, _OPEN, shards, _CLOSE, _seal(head, lines).encode(), _LAST))
        )

    def _head(self) -> dict[str, Any]:
        """Everything except its CRC and its shards, as JSON-ready values."""
        head: dict[str, Any] = to_builtins(replace(self, shards={}), str_keys=True)
        del head["shards"]
        return {"schema": SCHEMA, **head}

    def _lines(self) -> list[bytes]:
        """The entry of each shard after its name, in order."""
        infos = sorted(self.shards.items())
        return [b"%b: %b" % (canonical(name), canonical(info_dict(info))) for name, info in infos]

    @property
    def has_set_aside(self) -> bool:
        """Whether images are missing from its shards because ``on_damaged:
        skip`` set them aside.
        """
        return any(info.set_aside for info in self.shards.values())


class _Saved(Manifest, frozen=True, forbid_unknown_fields=True):
    """The content of a manifest's file."""

    schema: Literal[1]
    crc: str
    shards: dict[str, ShardEntry]  # type: ignore[assignment]


KEPT = "keeps the shards that journal.jsonl lists, and makes the others"
"""The work of convert on shards without a usable manifest."""

REWRITE = Hint(
    "run the same ",
    mention("convert"),
    f" again: it writes the manifest again, {KEPT}",
)

_WRITE_NEW = Hint(
    "remove manifest.json and run the same ",
    mention("convert"),
    f" again: it {KEPT}",
)


class _Schema(Struct):
    schema: Any = SCHEMA


_END = "\n}"
_OPEN, _CLOSE, _LAST = b',\n  "shards": {', b'\n  },\n  "crc": "', b'"\n}\n'
"""The text around the lines of shards in a file.
The whole file is one JSON value, whatever its layout.
"""


def _seal(head: Mapping[str, Any], lines: Iterable[bytes]) -> str:
    """The CRC32C of the canonical form of a manifest, in hexadecimal, computed shard by shard."""
    head_before = canonical({key: value for key, value in head.items() if key < "shards"})
    crc, separator = crc32c(head_before[:-1] + b', "shards": {'), b""
    for line in lines:
        crc, separator = crc32c(line, crc32c(separator, crc)), b", "
    head_after = canonical({key: value for key, value in head.items() if key > "shards"})
    return f"{crc32c(b'}, ' + head_after[1:], crc):08x}"


def load_manifest(path: AnyPath) -> Manifest | None:
    """The manifest of a conversion, or None if there is none.

    Raises:
        InputError: it can't be understood, or has changed since it was written.
    """
    try:
        if not path.exists():
            return None
    except OSError as error:  # the folder can't be searched
        raise unreadable(path, error) from error
    content = find_plain(path, MOST_BYTES) or b""
    try:
        with many_objects():
            saved = decode(content, type=_Saved)
            convert(saved.dataset.features, dict[str, _Feature])
            shards = {name: entry.info for name, entry in saved.shards.items()}
    except (ValueError, RecursionError) as error:
        schema = SCHEMA
        with contextlib.suppress(ValueError, RecursionError):
            schema = decode(content, type=_Schema).schema
        is_newer = isinstance(schema, int) and schema > SCHEMA
        raise not_understood(path, is_newer=is_newer) from error
    manifest = Manifest(
        saved.version, saved.dataset, saved.settings, saved.sources, saved.totals, shards
    )
    if saved.crc != _seal(manifest._head(), manifest._lines()):
        raise changed(path)
    return manifest


def usable_manifest(path: AnyPath) -> Manifest | None:
    """The manifest, or None if it is missing, can't be understood or has changed:
    verify reports that.
    """
    with contextlib.suppress(InputError):
        return load_manifest(path)
    return None


def find_set(layout: Layout, split: str) -> Layout:
    """The set of a folder that has a split: its manifest says so, or before there is one its name
    fits.

    Raises:
        InputError: the manifest of a set that may have it is damaged.
    """
    candidates = [set_ for set_ in reversed(layout.sets()) if set_.may_have(split)]
    for set_layout in candidates:
        manifest = load_manifest(set_layout.manifest_path)
        if manifest is not None and split in manifest.dataset.splits:
            return set_layout
    return candidates[0] if candidates else layout


def changed(path: AnyPath, fault: str = "its content does not match its checksum") -> InputError:
    """The error for a manifest that has changed since it was written."""
    return InputError(
        f"{path} has changed since it was written",
        fault,
        REWRITE,
    )


def features_by_column(settings: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The features that hold each column of a set's records."""
    record = settings.get("record")
    features_of_column: dict[str, tuple[str, ...]] = {}
    if not isinstance(record, dict):
        return inception.COLUMNS
    for feature, mapped in record.items():
        if isinstance(mapped, dict):
            column = str(mapped.get("from"))
            features_of_column[column] = (*features_of_column.get(column, ()), feature)
    return features_of_column


COPIES = "copies"
"""The entry of a split's source if its shards were made from several copies of the images."""


def has_copies(sources: Mapping[str, object]) -> bool:
    """Whether shards of a split were made from several copies of the images."""
    return any(isinstance(source, dict) and COPIES in source for source in sources.values())


CHANGED_BOXES = "changed_boxes"
"""The entry of a split's source with the boxes that ``boxes_outside`` changed:
by outcome, how many of each image.
"""


def count_changed_boxes(sources: Iterable[object]) -> dict[str, Counter[str]]:
    """How many boxes were "clipped" and "dropped" of each image,
    from the entries of all splits in a manifest.
    """
    counts: dict[str, Counter[str]] = {}
    for source in sources:
        with contextlib.suppress(ValueError):  # another program's entry counts nothing
            entry = convert(source, _BoxChanges)
            for outcome, images in entry.changed_boxes.items():
                counts.setdefault(outcome, Counter()).update(images)
    return dict(sorted(counts.items()))


class _BoxChanges(Struct):
    """The part of a split's source that counts boxes."""

    changed_boxes: dict[str, dict[str, Count]] = {}


def changed_boxes_text(changed: Mapping[str, Mapping[str, int]]) -> str:
    """The counts by outcome, and the first images: "boxes clipped:
    3, boxes dropped: 1, of 2 images: a.jpg, b.jpg".
    """
    counts = [
        f"boxes {outcome}: {sum(images.values()):,}" for outcome, images in sorted(changed.items())
    ]
    names = sorted({name for images in changed.values() for name in images})
    return f"{', '.join(counts)}, of {number_of(len(names), 'image')}: {listed(names)}"


def not_understood(path: AnyPath | None = None, *, is_newer: bool = False) -> InputError:
    """The error for a manifest, at ``path`` if it is known, with an invalid value in any place.

    ``is_newer``: its schema is that of a later version.
    """
    place = path or "manifest.json in the set's folder imagenet-prep"
    by_newer = "if it was written by a newer imagenet-prep, use that version; otherwise "
    return InputError(
        f"{place} can't be understood",
        "expected the values that imagenet-prep convert writes",
        Hint(by_newer if is_newer else "", _WRITE_NEW),
    )
