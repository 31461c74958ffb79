"""The kinds of files by their first bytes, where names don't tell. A file -> the format of its
image, or the source that reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.images import format_of, is_npy
from imagenet_prep.recipes.columns import ENDINGS, Content, is_odd
from imagenet_prep.sources.array_files import may_hold_arrays
from imagenet_prep.sources.lmdb_pages import MAGIC as LMDB
from imagenet_prep.sources.names import below
from imagenet_prep.tfrecord.framing import FramingError, parse_header


def kinds_by_content(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The kinds of files whose names don't tell, by content:
    the format of an image, "NumPy", or a kind with samples.
    """
    endings = (*ENDINGS["image"], *ENDINGS["array"], ".tar")
    unknown = (
        name for name in names if not name.lower().endswith(endings) and not is_odd("image", name)
    )
    return {name: kind for name in unknown if (kind := _kind(below(folder, name)))}


def fits(content: Content | None, kind: str) -> bool:
    """Whether a file of this kind can be read as others of a content are."""
    known = {"image": FORMATS, "pixels": ("JPEG", "PNG", "TIFF"), "array": ("NumPy",)}
    return content is not None and kind in known[content]


def _kind(path: Path) -> str:
    """The format of an image by its first bytes, or the source that reads such files;
    "" for another file.
    """
    head = read_head(path, 32)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head[16:20] == LMDB and path.name.endswith((".mdb", ".lmdb")):
        return "lmdb"
    for ending in ("arrow", "mds"):
        if path.name.lower().endswith(f".{ending}"):
            return ending
    with contextlib.suppress(FramingError):
        parse_header(head[:12], 0, 0)
        return "tfrecord"
    return (
        "arrays"
        if may_hold_arrays(path.name, head)
        else "NumPy"
        if is_npy(head)
        else format_of(head)
    )


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file; none if it can't be read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(size)
    return b""
