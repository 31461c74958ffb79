"""Files within tars, read in place: what lies in them is found as if it had been unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.formats import tar
from imagenet_prep.model import Engine, Failed
from imagenet_prep.sources.catalog import Container
from imagenet_prep.sources.listing import Found, Listing, join
from imagenet_prep.sources.reader import FileSlices

_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "Zstandard"}


def list_tars(archives: Sequence[Path], engine: Engine, *, folder_each: bool) -> Listing:
    """The files in all of ``archives``; with ``folder_each`` as if each lay in a folder of its archive's name.

    Raises:
        InputError: an archive is damaged or compressed, a name leads out of it, or occurs twice.
    """
    parts = []
    for outcome in engine.map(_Index(folder_each), archives):
        if isinstance(outcome, Failed):
            raise outcome.error
        parts.append(outcome.value)
    return join(parts)


@dataclass(frozen=True, slots=True)
class _Index:
    """Indexes one tar."""

    folder_each: bool

    def __call__(self, archive: Path) -> Found:
        found = Found(Container(archive, is_folder=False))
        lead = f"{archive.name.removesuffix('.tar')}/" if self.folder_each else ""
        with FileSlices(archive) as view:
            _refuse_compressed(archive, bytes(view[0:5]))
            stamp = archive.stat().st_mtime_ns
            try:
                for raw, offset, length in tar.iter_members(view, 0, len(view)):
                    name = _checked(archive, raw, offset)
                    if not any(part.startswith(".") for part in name.split("/")):
                        found.add(lead + name, offset, length, stamp)
            except tar.TarFault as fault:
                raise InputError(
                    f"{archive} is damaged at byte {fault.offset:,}", fault.reason, "get a sound copy of it"
                ) from fault
        return found


def _refuse_compressed(archive: Path, start: bytes) -> None:
    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            raise InputError(
                f"{archive} is compressed with {name}",
                "expected a plain tar: its files are read where they lie",
                "decompress it first",
            )


def _checked(archive: Path, raw: bytes, offset: int) -> str:
    """The name of a member, "./" before it taken away."""
    name = raw.decode("utf-8", "surrogateescape")
    while name.startswith("./"):
        name = name[2:]
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise InputError(
            f"{archive} holds a member whose name leads out of it, at byte {offset - tar.BLOCK:,}",
            f"expected a path within the archive, got {raw[:100].decode('utf-8', 'backslashreplace')!r}",
            "check where it comes from",
        )
    return name
