"""ask: copies of the splits, their tables and the settings -> the inputs of a plan.

A saved plan still holds if these are what they were.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import Asked, PlannedSet
from imagenet_prep.datasets.stored_plan import read_planned
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import nothing_found, refuse_unread
from imagenet_prep.ilsvrc2012.box_search import find_boxes_csv
from imagenet_prep.ilsvrc2012.devkit import devkit_paths
from imagenet_prep.ilsvrc2012.known_copies import refuse_known_copies
from imagenet_prep.ilsvrc2012.official import ImageSource
from imagenet_prep.ilsvrc2012.raw_data import ConsumedImages, checked_md5, find_copies, find_source
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.images.grades import Check
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout

# copies -------------------------------------------------------------------------------------------


def find_sources(layout: Layout) -> dict[str, ImageSource]:
    """The source of each split that is present."""
    sources: dict[str, ImageSource] = {}
    for split in facts.SPLITS:
        source = find_source(layout, split)
        if source is not None:
            sources[split] = source
    return sources


def require_sources(layout: Layout, splits: Collection[str]) -> dict[str, ImageSource]:
    """The sources of ``splits``; without any, those of every split that is present.

    Raises:
        InputError: one is missing, or all are.
    """
    sources = find_sources(layout)
    missing_splits = [split for split in splits or facts.SPLITS if split not in sources]
    for split in missing_splits:
        refuse_unread(layout, split)
        refuse_known_copies(layout, split)
        if splits:
            raise _no_images(layout, split)
    if not sources:
        raise nothing_found(layout)
    if not splits:
        return sources
    return {split: sources[split] for split in splits}


def _no_images(layout: Layout, split: str) -> InputError:
    """The error that raw data whose shards exist is missing."""
    elsewhere = replace(layout, raw=Path("FOLDER")).elsewhere()
    repair = command("repair", layout.data_dir, elsewhere)
    return InputError(
        f"no {split} images in {layout.raw_dir}",
        "expected the archive or the folder that the shards were made from",
        Hint("name the folder of the raw data: ", repair, "; or get a sound copy of the shards"),
    )


def other_copies(layout: Layout, source: ImageSource) -> list[str]:
    """The other copies of a split, for messages."""
    copies = find_copies(layout, source.split)
    unread = [copy.files for copy in copies if copy.path != source.path]
    if isinstance(source, ConsumedImages):  # the conversion that consumes them reads no other copy
        return [f"{files} was not read" for files in unread]
    return [f"{files} was not read: to use it, move {source.files} away" for files in unread]


# inputs -------------------------------------------------------------------------------------------


def ask(
    layout: Layout, options: ConvertOptions, sources: Mapping[str, ImageSource]
) -> Asked | None:
    """The inputs of a plan; None if their raw data was consumed."""
    recorders: dict[str, InceptionRecorder] = {}
    identities: dict[str, list[str]] = {}
    for split, source in sources.items():
        if isinstance(source, ConsumedImages):
            return None
        recorders[split] = recorder_for(source, layout, options)
        identities[split] = _identify(source, layout)
    return Asked(_all_settings(options, recorders), identities, recorders, options.fingerprinted())


def _all_settings(
    options: ConvertOptions, recorders: Mapping[str, InceptionRecorder]
) -> list[list[str]]:
    """Name and value of each setting that a plan depends on."""
    planning_options = options.replace(overwrite=False, consume=False)
    settings = [[name, str(setting)] for name, setting in planning_options.chosen()]
    checks = [[split, recorder.check] for split, recorder in recorders.items()]
    labels = json.dumps(options.part.recorded, sort_keys=True)
    return [*settings, *checks, ["labels", labels]]


def _identify(source: ImageSource, layout: Layout) -> list[str]:
    """Values that identify a copy, its tables and their state, without reading them."""
    boxes_csv = find_boxes_csv(layout, source.split)
    paths = [source.path]
    if boxes_csv is not None:
        paths.append(boxes_csv)
    paths += devkit_paths(layout)
    identity = [type(source).__name__, source.words, source.missing]
    for path in paths:
        identity.append(str(path.resolve()))
        if path.is_file():
            status = path.stat()
            identity.append(f"{status.st_size} bytes of {status.st_mtime_ns}")
    return identity


def saved_plan(
    records: SetRecords, options: ConvertOptions, sources: Mapping[str, ImageSource]
) -> PlannedSet | None:
    """These splits from the saved plan, if their copies are unchanged."""
    layout = records.layout
    plan = records.plan
    asked = ask(layout, options, sources)
    if plan is None or asked is None:
        return None
    saved_identities = plan.asked.get("raw", {})
    for split, identity in asked.raw.items():
        if saved_identities.get(split) != identity:
            return None
    return read_planned(plan, layout, asked)


# recorders ----------------------------------------------------------------------------------------


def recorder_for(source: ImageSource, layout: Layout, options: ConvertOptions) -> InceptionRecorder:
    """The recorder for the images of a split."""
    check = _check_of(source, layout, options)
    return InceptionRecorder(check=check, how=options.reencode, numbers=options.part.numbers())


def _check_of(source: ImageSource, layout: Layout, options: ConvertOptions) -> Check:
    """The check of images: "auto" trusts a file whose published digest was verified."""
    if options.check != "auto":
        return options.check
    if not source.md5:
        return "decode"
    if isinstance(source, ConsumedImages) or checked_md5(layout, source.path) == source.md5:
        return "header"
    return "decode"
