"""The manifest of a finished conversion: what was made, from what, how."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, Phrase
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import counts, info_dict, seal, shard_info, texts
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.plain import load_json
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.tfrecord.inception import PROMISE

SCHEMA = 2
"""Of the manifest. Schema 1 described the data set only where a recipe had made it, under "recipe"."""

_KEYS = ("version", "dataset", "settings", "sources", "totals", "shards")

ILSVRC2012, RECIPE = "ILSVRC2012", "recipe"
"""The kinds of data sets: by whose rules one is checked and made again."""

_SPLITS = ["train", "validation"]
_UNSAID: dict[str, Any] = {"kind": ILSVRC2012, "name": "ILSVRC2012", "splits": _SPLITS, "features": PROMISE}
"""The data set of a manifest of schema 1 that describes none."""


def _split_totals(value: dict[str, Any]) -> SplitTotals:
    totals = SplitTotals(**value)
    counts(*dataclasses.astuple(totals))
    return totals


@dataclasses.dataclass(frozen=True, slots=True)
class DatasetEntry:
    """What a manifest says of its data set.

    ``kind`` tells by which rules it is checked and made again; ``splits`` are in order, each is what the names of its
    shards begin with. ``features`` are what every record holds: by name its "kind", whether it is "optional", and how
    many "values" it has (None: any number). ``turned`` counts, by split, the images that were turned upright.
    ``classes`` are those of a part of ILSVRC2012, or of all of it with other labels: the label of each, by its wnid.
    """

    kind: str
    name: str
    splits: tuple[str, ...]
    features: Mapping[str, Mapping[str, Any]]
    turned: Mapping[str, int] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, int] = dataclasses.field(default_factory=dict)


def _dataset(value: dict[str, Any]) -> DatasetEntry:
    """What a manifest says of its data set, once it is known to be of its form."""
    if value["schema"] == 1:
        earlier = value.get("recipe")
        known: dict[str, Any] = {"kind": RECIPE, "name": "data set", "splits": sorted(value["totals"])}
        found: dict[str, Any] = _UNSAID if earlier is None else {**known, **earlier}
    else:
        found = {"classes": {}, **value["dataset"]}
        if found.keys() != {field.name for field in dataclasses.fields(DatasetEntry)}:
            raise ValueError("dataset")
    if found["kind"] not in (ILSVRC2012, RECIPE):
        raise ValueError("kind")
    features, turned, classes = found["features"], found.get("turned", {}), found.get("classes", {})
    kinds = (each["kind"] for each in features.values())
    splits = texts(found["splits"])
    texts([found["kind"], found["name"], *features, *kinds, *classes])
    for each in features.values():
        if type(each["optional"]) is not bool:
            raise TypeError("expected true or false")
        counts(each["values"] or 0)
    counts(*turned.values(), *classes.values())
    return DatasetEntry(found["kind"], found["name"], splits, dict(features), dict(turned), dict(classes))


def _entry_dict(entry: DatasetEntry) -> dict[str, Any]:
    """The JSON form of a DatasetEntry: without classes, if none are told, it is that of earlier versions."""
    value = dataclasses.asdict(entry)
    if not entry.classes:
        del value["classes"]
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class SplitTotals:
    """What was made of one split: images, classes, boxes, shards; ``expected`` images in the whole data set."""

    images: int
    expected: int
    classes: int
    boxes: int
    shards: int


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """What was made, from what, how. ``settings`` are those that decide the bytes; ``shards`` by name.

    ``crc`` is what the file says of all this: None if an earlier version wrote it.
    """

    version: str
    dataset: DatasetEntry
    settings: dict[str, Any]
    sources: dict[str, Any]
    totals: dict[str, SplitTotals]
    shards: dict[str, ShardInfo]
    crc: str | None = dataclasses.field(default=None, compare=False)

    def save(self, path: Path) -> bool:
        """Write it atomically, sealed, unless it is there already; say whether it was written."""
        value = self._json()
        return save_json(path, {**value, "crc": seal(value)})

    @property
    def is_sealed(self) -> bool:
        """Whether it is as its ``crc`` says; one of an earlier version, which has none, is believed."""
        return self.crc is None or self.crc == seal(self._json())

    def _json(self) -> dict[str, Any]:
        """All but its CRC as JSON gives it back: keys are texts, and sorted as such."""
        shards = {name: info_dict(info) for name, info in self.shards.items()}
        value = {"schema": SCHEMA, **{key: getattr(self, key) for key in _KEYS}, "shards": shards}
        totals = {split: dataclasses.asdict(total) for split, total in self.totals.items()}
        dataset = _entry_dict(self.dataset)
        found: dict[str, Any] = json.loads(json.dumps({**value, "dataset": dataset, "totals": totals}))
        return found

    @property
    def has_set_aside(self) -> bool:
        """Whether images are missing from its shards because ``skip_bad`` set them aside."""
        return any(info.set_aside for info in self.shards.values())


def load_manifest(path: Path) -> Manifest | None:
    """The manifest of a conversion, or None if there is none.

    Raises:
        InputError: there is one, but it can't be understood, or is not what was written.
    """
    manifest = load_unproven(path)
    if manifest is not None and not manifest.is_sealed:
        raise changed(path)
    return manifest


def usable_manifest(path: Path) -> Manifest | None:
    """The same; None, too, where it can't be understood or is not what was written: verify says so."""
    with contextlib.suppress(InputError):
        return load_manifest(path)
    return None


def changed(path: Path, fault: str = "its content does not give the crc in it") -> InputError:
    """The error for a manifest that is not what was written."""
    return InputError(
        f"{path} has changed since it was written",
        fault,
        Phrase("run the same {convert} again: it writes it again, and finished shards are kept"),
    )


def load_unproven(path: Path) -> Manifest | None:
    """The same, whatever its ``crc`` is: for those who can correct it.

    Raises:
        InputError: there is one, but it can't be understood.
    """
    try:
        if not path.exists():
            return None
    except OSError as error:  # the folder can't be searched
        raise unreadable(path, error) from error
    value = load_json(path)
    try:
        is_earlier = value["schema"] == 1
        keys = {"schema", "recipe", *_KEYS} - {"dataset"} if is_earlier else {"schema", "crc", *_KEYS}
        if value["schema"] not in (1, SCHEMA) or (value.keys() ^ keys) - ({"recipe"} if is_earlier else set()):
            raise ValueError("schema")
        return Manifest(
            version=str(value["version"]),
            dataset=_dataset(value),
            settings=dict(value["settings"]),
            sources=dict(value["sources"]),
            totals={split: _split_totals(total) for split, total in value["totals"].items()},
            shards={name: shard_info(info) for name, info in value["shards"].items()},
            crc=None if is_earlier else str(value["crc"]),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        other = value.get("schema", SCHEMA) if isinstance(value, dict) else SCHEMA
        raise InputError(
            f"{path} can't be understood" + (f": it is of schema {other!r}" if other != SCHEMA else ""),
            f"expected a manifest of schema {SCHEMA}",
            Phrase("remove it and run the same {convert} again: finished shards are kept"),
        ) from error
