"""The kinds of files by their first bytes, where names don't tell. A file -> the format of its
image, or the source that reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.images import format_of, is_npy
from imagenet_prep.recipes.columns import ENDINGS, Content, is_other_image
from imagenet_prep.recipes.source_kinds import source_kinds
from imagenet_prep.sources.names import below

FORMATS_OF_CONTENT: dict[Content, Collection[str]] = {
    "image": FORMATS,
    "pixels": ("JPEG", "PNG", "TIFF"),
    "array": ("NumPy",),
}
"""The formats that a content is read from."""


def kinds_by_content(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The kinds of files whose names don't tell, by content:
    the format of an image, "NumPy", or a kind with samples.
    """
    endings = (*ENDINGS["image"], *ENDINGS["array"], ".tar")
    kinds: dict[str, str] = {}
    for name in names:
        if name.lower().endswith(endings) or is_other_image("image", name):
            continue
        kind = _kind_of(below(folder, name))
        if kind:
            kinds[name] = kind
    return kinds


def fits(content: Content | None, kind: str) -> bool:
    """Whether a file of this kind can be read as others of a content are."""
    return content is not None and kind in FORMATS_OF_CONTENT[content]


def _kind_of(path: Path) -> str:
    """The format of an image by its first bytes, or the source that reads such files;
    "" for another file.
    """
    head = read_head(path, 32)
    for kind in source_kinds().values():
        if kind.recognises is not None and kind.recognises(path.name, head):
            return kind.key
    return "NumPy" if is_npy(head) else format_of(head)


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file; none if it can't be read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(size)
    return b""
