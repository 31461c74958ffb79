"""damaged-images.jsonl: the images that a finished set leaves out as damaged, written from its manifest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import canonical
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout, by_number, grown_from, split_of
from imagenet_prep.storage.location import open_store
from imagenet_prep.storage.refusals import writing


def save_damaged_images(layout: Layout, manifest: Manifest) -> None:
    """Write a line per image that was left out, durably; nothing if there is none. It comes before the manifest."""
    infos = [manifest.shards[name] for name in sorted(manifest.shards, key=by_number)]
    lines = [line for info in infos for line in _lines(info)]
    if lines:
        save_bytes(layout.damaged_images_path, b"".join(lines))


def remove_damaged_images(layout: Layout) -> None:
    """Remove the list of an older set, durably, if there is one."""
    path = layout.damaged_images_path
    if path.exists():
        with writing(path):
            path.unlink(missing_ok=True)
            open_store(layout.state_dir).sync_names()


def _lines(info: ShardInfo) -> Iterator[bytes]:
    split, _ = grown_from(split_of(info.name))
    for image, reason in itertools.zip_longest(info.set_aside, info.faults, fillvalue=""):
        yield canonical({"split": split, "shard": info.name, "image": image, "reason": reason}) + b"\n"
