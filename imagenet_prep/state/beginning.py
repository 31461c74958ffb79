"""What a conversion was begun with, kept beside its shards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import Settings
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, locate


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the last conversion set out to make: shards and records by split; the settings given; its raw folder.

    Of a data set that has ``classes`` to tell of, as its entry in a manifest has, also these, what it is called, and
    how many images it should have by split.
    """

    shards: Mapping[str, int]
    options: Settings
    raw: AnyPath | None = None
    name: str = ""
    classes: Mapping[str, int] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    records: Mapping[str, int] = field(default_factory=dict)


def save_beginning(layout: Layout, begun: Beginning, recipe_file: Mapping[str, str] | None) -> None:
    """Keep what a conversion begins with: status and repair know it then, whatever happens to the conversion."""
    raw = str(begun.raw.resolve()) if begun.raw else None
    part = {"name": begun.name, "classes": dict(begun.classes), "images": dict(begun.images)} if begun.classes else {}
    counts = {"shards": dict(begun.shards), "records": dict(begun.records)}
    value = {**counts, "options": list(begun.options), "raw": raw, **part}
    save_json(layout.conversion_path, value)
    if recipe_file is None:
        layout.recipe_path.unlink(missing_ok=True)
    else:
        save_json(layout.recipe_path, dict(recipe_file))


def load_beginning(layout: Layout) -> Beginning | None:
    """What the last conversion began with, or None if nothing that can be understood tells."""
    try:
        value = load_json(layout.conversion_path)
        shards = {str(split): int(count) for split, count in value["shards"].items()}
        classes, images, records = (
            {str(k): int(n) for k, n in value.get(key, {}).items()} for key in ("classes", "images", "records")
        )
        options, name = _settings(value["options"]), str(value.get("name", ""))
        return Beginning(shards, options, kept_path(value["raw"]), name, classes, images, records)
    except (InputError, LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _settings(kept: Iterable[Any]) -> Settings:
    """Settings as they were kept: names with values; by earlier versions as words of a command."""
    found: list[tuple[str, object]] = []
    for each in kept:
        if isinstance(each, list):
            found.append((str(each[0]), each[1]))
        elif each.startswith("--"):
            found.append((each[2:].replace("-", "_"), True))
        else:
            found[-1] = (found[-1][0], each)
    return tuple(found)


def kept_path(kept: object) -> AnyPath | None:
    """A path that was kept as text; None if it is none, or none that a system can have."""
    if not isinstance(kept, str):
        return None
    try:
        os.fsencode(kept)
    except UnicodeEncodeError:
        return None
    return locate(kept)
