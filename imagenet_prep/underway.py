"""What a conversion was begun with, kept beside its shards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.datasets.identity import is_begun
from imagenet_prep.datasets.plan import PlannedSet
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.layout import Layout
from imagenet_prep.manifest import Journal
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.plain import load_json


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the last conversion set out to make: shards by split; its options, as words of a command; its ``--raw``."""

    shards: Mapping[str, int]
    options: tuple[str, ...]
    raw: Path | None = None


def save_beginning(layout: Layout, planned: PlannedSet, recipe_file: Mapping[str, str] | None) -> None:
    """Keep what a conversion begins with: status and repair know it then, whatever happens to the conversion."""
    shards = {split.catalog.split: len(split.plans) for split in planned.splits}
    raw = str(layout.raw.resolve()) if layout.raw else None
    save_json(layout.conversion_path, {"shards": shards, "options": list(planned.options), "raw": raw})
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


def refuse_doubtful(planned: PlannedSet, layout: Layout) -> None:
    """Raise what speaks against beginning a set, unless shards of this very set are done: then it is gone on with.

    Versions that saw none of it began such sets. Only a shard with images proves that it is this one.
    """
    if not planned.doubts:
        return
    plans = [(plan, split) for split in planned.splits for plan in split.plans if plan.start < plan.stop]
    with Journal(layout.journal_path) as journal:
        begun = any(is_begun(plan, split, journal) for plan, split in plans)
    if not begun:
        inputs = [each for each in planned.doubts if isinstance(each, InputError)]
        raise all_of(inputs) if inputs else planned.doubts[0]
