"""damaged-images.jsonl: the images that a finished set or an export leaves out as damaged,
and why.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator

from msgspec import Struct, to_builtins
from msgspec.json import decode

from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import canonical
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.files import plain_lines, save_bytes
from imagenet_prep.storage.layout import Layout, by_number, grown_from, split_of
from imagenet_prep.storage.location import AnyPath, open_store
from imagenet_prep.storage.refusals import writing


class DamagedImage(Struct, frozen=True, omit_defaults=True):
    """A line of the file: an image that a shard lacks, and why.

    ``record`` is the number of its record in the set that is exported; None for an image that has
    no record.
    """

    split: str
    shard: str
    image: str
    reason: str
    record: int | None = None


def load_damaged_images(path: AnyPath) -> dict[str, tuple[DamagedImage, ...]]:
    """The images of a file by shard; other lines are skipped."""
    images = dict[str, tuple[DamagedImage, ...]]()
    for line in plain_lines(path):
        with contextlib.suppress(ValueError):
            image = decode(line, type=DamagedImage)
            images[image.shard] = (*images.get(image.shard, ()), image)
    return images


def write_damaged_images(path: AnyPath, images: Iterable[DamagedImage]) -> None:
    """Write a line per image, durably."""
    save_bytes(path, b"".join(canonical(to_builtins(image)) + b"\n" for image in images))


def save_damaged_images(layout: Layout, manifest: Manifest) -> None:
    """Write the list of a set from its manifest; nothing if no image was left out.
    It comes before the manifest.
    """
    infos = [manifest.shards[name] for name in sorted(manifest.shards, key=by_number)]
    images = [image for info in infos for image in _left_out(info)]
    if images:
        write_damaged_images(layout.damaged_images_path, images)


def remove_damaged_images(layout: Layout) -> None:
    """Remove the list of an older set, durably, if there is one."""
    path = layout.damaged_images_path
    if path.exists():
        with writing(path):
            path.unlink(missing_ok=True)
            open_store(layout.state_dir).sync_names()


def _left_out(info: ShardInfo) -> Iterator[DamagedImage]:
    split, _ = grown_from(split_of(info.name))
    for image, reason in itertools.zip_longest(info.set_aside, info.faults, fillvalue=""):
        yield DamagedImage(split, info.name, image, reason)
