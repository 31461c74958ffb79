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
    split, shards, is_about = pending.split, pending.shards, pending.is_about
    made = pending.size + RECORD * pending.images if keeps_size else 0
    needs = []
    if shards:
        what = number_of(shards, f"{split} shard")
        needs.append(Need("convert", what, layout.output_dir, made, 3 * shards, is_about))
    if shards and in_order:
        bundles = made // 8 if keeps_size else pending.size
        needs.append(
            Need(
                "convert",
                f"bundles for {split} shards",
                layout.bundle_dir,
                bundles,
                shards,
                is_about,
            )
        )
    return needs


def is_pass_better(path: AnyPath, left: int, options: MakingOptions) -> bool:
    """Whether one pass through ``path`` is faster for ``left`` bytes of
    images than reading them in any order.
    """
    local = local_or_none(path)
    if local is None:
        return False
    if options.read_order == "auto":
        return is_seek_dear(nearest(local)) and left > available_memory()
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
    best, found = -1, ""
    try:
        lines = (proc / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = Path(fields.split(" ")[4].encode().decode("unicode_escape"))
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, found = len(mount.parts), rest.split(" ")[0]
    return found


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
