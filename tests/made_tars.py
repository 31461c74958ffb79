"""Tars of the tests' own making, and whatever else is written into memory."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from imagenet_prep.demo.archives import MadeSet


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """A header of a member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def pack(
    members: Mapping[str, bytes] | Iterable[tuple[tarfile.TarInfo | str, bytes]],
    form: int = tarfile.GNU_FORMAT,
) -> bytes:
    """A tar of members, in order, as Python's tarfile writes it;
    a header with content gets the content's size.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, content in members.items() if isinstance(members, Mapping) else members:
            entry = member(info) if isinstance(info, str) else info
            entry.size = len(content) or entry.size
            tar.addfile(entry, io.BytesIO(content) if content else None)
    return out.getvalue()


def in_memory(write: Callable[[io.BytesIO], object]) -> bytes:
    """What is written into a file."""
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def save(path: Path, content: bytes | str) -> None:
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        content.encode(errors="surrogateescape") if isinstance(content, str) else content
    )


def unpack(tar: bytes | Path) -> dict[str, bytes]:
    """The files of a tar, compressed or not, by name."""
    with tarfile.open(
        fileobj=io.BytesIO(tar if isinstance(tar, bytes) else tar.read_bytes())
    ) as opened:
        return {each.name: file.read() for each in opened if (file := opened.extractfile(each))}


def contents(made: MadeSet, split: str) -> dict[str, bytes]:
    """The images of a split by their official names."""
    found = unpack(made.archives[split])
    return (
        {name: data for tar in found.values() for name, data in unpack(tar).items()}
        if split == "train"
        else found
    )
