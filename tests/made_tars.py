"""Tars of the tests' own making."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """A header of a member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def pack(
    members: Mapping[str, bytes] | Iterable[tuple[tarfile.TarInfo | str, bytes]], form: int = tarfile.GNU_FORMAT
) -> bytes:
    """A tar of members, in order, as Python's tarfile writes it; a header with content gets the content's size."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, content in members.items() if isinstance(members, Mapping) else members:
            entry = member(info) if isinstance(info, str) else info
            entry.size = len(content) or entry.size
            tar.addfile(entry, io.BytesIO(content) if content else None)
    return out.getvalue()
