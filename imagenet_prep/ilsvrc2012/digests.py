"""find_digests: the official archives of a folder -> Digests:
which of them have the published MD5.
"""

from __future__ import annotations

import hashlib

from msgspec import Struct

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.facts import OfficialArchive
from imagenet_prep.ilsvrc2012.raw_data import checked_md5
from imagenet_prep.model import Progress
from imagenet_prep.storage.files import open_file
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

_BLOCK = 16 << 20


class Digests(Struct, frozen=True):
    """The evidence of the official archives' digests.

    Args:
        published: the keys of archives with the published MD5.
        others: a sentence for each archive of images with another size or MD5.
        notes: a remark for each archive.
    """

    published: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_digests(layout: Layout, progress: Progress, *, reads: bool) -> Digests:
    """Compare the archives that are there with the published facts;
    ``reads``: compute the MD5 that isn't known yet.
    """
    published, others, notes = set(), [], []
    for key, archive in facts.ARCHIVES.items():
        is_of_images = key in facts.SPLITS
        path = layout.archive_path(archive) if is_of_images else layout.extra_path(archive)
        if not path.is_file():
            continue
        fault = _fault(layout, path, archive, progress, reads=reads)
        if fault is None:
            continue
        if not fault:
            published.add(key)
            notes.append(f"{archive.filename} has the published MD5")
        elif is_of_images:
            others.append(f"{archive.filename} is not the published archive: {fault}.")
        else:
            notes.append(f"{archive.filename} is not the published archive: {fault}")
    return Digests(frozenset(published), tuple(others), tuple(notes))


def _fault(
    layout: Layout, path: AnyPath, archive: OfficialArchive, progress: Progress, *, reads: bool
) -> str | None:
    """The difference from the published archive: "" if there is none, None if nobody has looked."""
    if checked_md5(layout, path) == archive.md5:
        return ""
    size = path.stat().st_size
    if archive.size is not None and size != archive.size:
        return f"expected {archive.size:,} bytes, found {size:,}"
    if not reads:
        return None
    md5 = _md5(path, size, progress)
    return "" if md5 == archive.md5 else f"expected MD5 {archive.md5}, found {md5}"


def _md5(path: AnyPath, size: int, progress: Progress) -> str:
    """The MD5 (hex) of a file."""
    digest = hashlib.md5(usedforsecurity=False)
    progress.begin(f"MD5 of {path.name}", size, "B")
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            progress.advance(len(block))
    progress.end()
    return digest.hexdigest()
