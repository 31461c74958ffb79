"""The disk space of shards and their bundles;
and whether a source is read in one pass, in its own order.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.storage.space import Need, nearest
from imagenet_prep.text import number_of

RECORD = 1024
"""A record that holds its image is larger by less than this many bytes,
including its lines in the index.
"""


HELD = 64 << 20
"""Bytes of shards after which shards made from bundles are made durable:
only then bundles can be removed.
"""


class PendingShards(Struct, frozen=True):
    """The unfinished shards of a split: ``shards`` of them, from ``images`` of ``size`` bytes in
    total.

    ``is_about``: these numbers are an estimate.
    """

    split: str
    shards: int
    images: int
    size: int
    is_about: bool = False


def shard_needs(
    layout: Layout, pending: PendingShards, *, in_order: bool, keeps_size: bool
) -> list[Need]:
    """The space for pending shards, and for their bundles if the source is read ``in_order``.

    A bundle is removed once its shard is durable: only the bytes that exist twice for a while are
    counted. If records don't keep the size of their image, the size of the shards is unknown, and
    only bundles are counted.
    """
    shards, is_about = pending.shards, pending.is_about
    if not shards:
        return []
    size = pending.size + RECORD * pending.images if keeps_size else 0
    words = number_of(shards, f"{pending.split} shard")
    needs = [Need("convert", words, layout.output_dir, size, 3 * shards, is_about)]
    if in_order:
        bundles = size // 8 if keeps_size else pending.size
        words = f"bundles for {pending.split} shards"
        needs.append(Need("convert", words, layout.bundle_dir, bundles, shards, is_about))
    return needs


def is_pass_better(path: AnyPath, size: int, options: MakingOptions) -> bool:
    """Whether one pass through ``path`` is faster than reading its images in any order.

    ``size`` is the bytes of the images to read.
    """
    local = local_or_none(path)
    if local is None:
        return False
    if options.read_order == "auto":
        return is_seek_dear(nearest(local)) and size > available_memory()
    return options.read_order == "sequential"


# where reading out of order is expensive ----------------------------------------------------------

NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.gcsfuse", "fuse.s3fs", "fuse.sshfs"}
    | {"glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3"}
)
"""File system types, as /proc/self/mountinfo names them, whose reads cross a network."""


def is_seek_dear(path: Path, *, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> bool:
    """Whether ``path`` is on a spinning disk or a network file system;
    False if the system doesn't tell.
    """
    return _file_system(path.resolve(), proc) in NETWORK or _is_rotational(path.stat().st_dev, sys)


def _is_rotational(device: int, sys: Path) -> bool:
    block = sys / "dev" / "block" / f"{os.major(device)}:{os.minor(device)}"
    for folder in (block, block.resolve().parent):  # a partition's queue is that of its disk
        try:
            return (folder / "queue" / "rotational").read_text().strip() == "1"
        except OSError:
            continue
    return False


def _file_system(path: Path, proc: Path) -> str:
    """The type of the file system with the longest mount point above ``path``."""
    try:
        lines = (proc / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return ""
    longest = -1
    file_system = ""
    for line in lines:
        fields, _, type_and_source = line.partition(" - ")
        mount = Path(fields.split(" ")[4].encode().decode("unicode_escape"))
        if path.is_relative_to(mount) and len(mount.parts) >= longest:
            longest = len(mount.parts)
            file_system = type_and_source.split(" ")[0]
    return file_system


def available_memory(*, proc: Path = Path("/proc")) -> int:
    """Bytes that can be used without swapping, page cache included;
    8 GiB if the system doesn't tell.
    """
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 8 << 30
