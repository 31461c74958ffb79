"""What a conversion was begun with, kept beside its shards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.plain import load_json


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the last conversion set out to make: shards by split; its options, as words of a command; its ``--raw``."""

    shards: Mapping[str, int]
    options: tuple[str, ...]
    raw: Path | None = None


def save_beginning(
    layout: Layout, shards: Mapping[str, int], options: Sequence[str], recipe_file: Mapping[str, str] | None
) -> None:
    """Keep what a conversion begins with: status and repair know it then, whatever happens to the conversion."""
    raw = str(layout.raw.resolve()) if layout.raw else None
    save_json(layout.conversion_path, {"shards": shards, "options": list(options), "raw": raw})
    if recipe_file is None:
        layout.recipe_path.unlink(missing_ok=True)
    else:
        save_json(layout.recipe_path, dict(recipe_file))


def load_beginning(layout: Layout) -> Beginning | None:
    """What the last conversion began with, or None if nothing that can be understood tells."""
    try:
        value = load_json(layout.conversion_path)
        shards = {str(split): int(count) for split, count in value["shards"].items()}
        return Beginning(shards, tuple(map(str, value["options"])), kept_path(value["raw"]))
    except (InputError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None


def kept_path(kept: object) -> Path | None:
    """A path that was kept as text; None if it is none, or none that a system can have."""
    if not isinstance(kept, str):
        return None
    try:
        os.fsencode(kept)
    except UnicodeEncodeError:
        return None
    return Path(kept)
