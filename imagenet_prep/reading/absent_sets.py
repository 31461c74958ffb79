"""The errors of a place without the records that ``open`` names:
no folder, no shards, too few, or no such split.
"""

from __future__ import annotations

from collections.abc import Collection

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.damage_words import is_recorded, remedy
from imagenet_prep.state.export_record import refuse_export
from imagenet_prep.storage.files import absence_of, kind_in_words
from imagenet_prep.storage.layout import Layout, expected_names, parse_shard_name
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import either, listed


def refuse_no_folder(folder: AnyPath) -> None:
    """Raise InputError for a path on this machine that is no folder; reads report others."""
    local = local_or_none(folder)
    try:
        is_folder = local is None or local.is_dir()
    except OSError:  # reading it names the reason
        return
    if not is_folder:
        raise no_folder(folder)


def no_folder(folder: AnyPath) -> InputError:
    """The error for a path that is another kind of file, or is not there."""
    hint = "name the folder that holds the shards"
    if parse_shard_name(folder.name):
        hint = f"name the folder of the shards: {folder.parent}"
    return InputError(absence_of(folder), "expected a folder of shards", hint)


def no_split_named(place: object, splits: Collection[str]) -> UsageError:
    """The error for a split that is no text, or an empty one; ``splits`` are there."""
    names = sorted(splits)
    hint = "name the folder that holds the shards, and their split"
    if names:
        hint = f"name one of them: split={names[0]!r}"
    return UsageError("no split is named", f"{place} has {', '.join(names) or 'no shards'}", hint)


def no_such_split(layout: Layout, split: str, splits: Collection[str]) -> InputError:
    """The error for a split that the folder does not have; ``splits`` are those that it has."""
    refuse_export(layout.output_dir)
    detail = expected_names(split)
    hint = f"name the folder that holds the {split} shards"
    elsewhere = layout.sets_near()
    if not elsewhere and not splits:
        elsewhere = layout.shards_below([split])
    if elsewhere:
        return InputError(
            f"no {split} shards in {layout.output_dir}",
            f"found shards in {listed(map(str, elsewhere))}",
            f"name the folder that holds the shards: {elsewhere[0]}",
        )
    if splits:
        hint = f"name a split of this folder: {either(sorted(splits))}; or {hint}"
    return InputError(f"no {split} shards in {layout.output_dir}", detail, hint)


def missing_shards(layout: Layout, part: str, first: str) -> InputError:
    """The error for a set without a part of its shards, such as "2 of 8 train shards"; ``first`` is
    the first that is missing.
    """
    path = layout.shard_path(first)
    detail = f"the first missing one: {first}"
    words = kind_in_words(path)
    if words not in ("missing", "a file"):
        detail += f", {words}"
    hint = "get the missing shards, or name the folder that holds all"
    if is_recorded(layout, first):
        hint = remedy(path)
    return InputError(f"{layout.output_dir} lacks {part}", detail, hint)
