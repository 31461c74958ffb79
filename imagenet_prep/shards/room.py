"""What shards and their bundles take of a disk; whether a source is read once in its own order."""

from __future__ import annotations

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.sources.seeking import available_memory, is_seek_dear
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.storage.space import Need, nearest
from imagenet_prep.text import number_of

_RECORD = 1024
"""A record that holds its image takes less than this many bytes more, with its lines in the index."""


HELD = 64 << 20
"""Bytes of shards after which they are made safe where they are made from bundles: those can go only then."""

_LEAST_STEP = 16 << 20  # bytes; with each step of a pass that consumes, every bundle is made durable


def shard_needs(
    layout: Layout, split: str, *, shards: int, images: int, size: int, in_order: bool, keeps_size: bool, is_about: bool
) -> list[Need]:
    """What the shards of a split take that are still to be made, from images of ``size`` bytes in all.

    A bundle goes when its shard stands: of bundles, only the bytes count that are there twice for a while. Of shards
    whose records don't keep the size of their image nothing is known but the bundles.
    """
    made = size + _RECORD * images if keeps_size else 0
    needs = []
    if shards:
        what = number_of(shards, f"{split} shard")
        needs.append(Need("convert", what, layout.output_dir, made, 3 * shards, is_about))
    if shards and in_order:
        bundles = made // 8 if keeps_size else size
        needs.append(Need("convert", f"bundles for {split} shards", layout.bundle_dir, bundles, shards, is_about))
    return needs


def consumed_needs(
    layout: Layout, split: str, *, shards: int, images: int, size: int, under_way: int, whole: int, is_about: bool
) -> list[Need]:
    """What shards take beside raw data that gives its space to them; ``size`` and ``images`` as for ``shard_needs``.

    That is what frames records, and, since raw data and bundles or bundles and shards are there twice for a while, a
    step of the pass, or what is held until the next sync with the shards ``under_way``; and ``whole``, the largest file
    that can only be given back as a whole.
    """
    twice = max(min(size, consumed_step(size)), min(size, HELD + under_way))
    what = f"{number_of(shards, f'{split} shard')} in the space of the raw data"
    needed = _RECORD * images + twice + whole
    return [Need("convert", what, layout.output_dir, needed, 4 * shards, is_about)] if shards else []


def consumed_step(size: int) -> int:
    """Bytes after which a pass over ``size`` bytes gives their space back: a small part of it, but not too often."""
    return max(size // 32, _LEAST_STEP)


def is_pass_better(path: AnyPath, left: int, options: MakingOptions) -> bool:
    """Whether ``left`` bytes of images that could be read in any order are better read in one pass over ``path``."""
    local = local_or_none(path)
    if local is None:
        return False
    if options.read_order == "auto":
        return is_seek_dear(nearest(local)) and left > available_memory()
    return options.read_order == "sequential"
