"""Whether seeking is dear where a file lies: a spinning disk or a network file system."""

from __future__ import annotations

import os
from pathlib import Path

NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.gcsfuse", "fuse.s3fs", "fuse.sshfs"}
    | {"glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3"}
)
"""File system types, as /proc/self/mountinfo names them, whose reads cross a network."""


def is_seek_dear(path: Path, *, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> bool:
    """Whether ``path`` lies on a spinning disk or a network file system; False where the system doesn't tell."""
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
    """Bytes that can be used without swapping, page cache included; 8 GiB where the system doesn't tell."""
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 8 << 30
