"""Journal: the finished shards, one sealed JSON line each;
and the canonical JSON form that seals use.
"""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import asdict

from imagenet_prep.model import Count, ShardInfo
from imagenet_prep.storage.files import append_to, parts_of, plain_lines, save_bytes
from imagenet_prep.storage.location import AnyPath, Appender
from imagenet_prep.tfrecord import crc32c

_canonical = json.JSONEncoder(sort_keys=True).encode
_SEALED = b'{"crc": "'
"""The start of a sealed line: "crc" is the first key of an entry.
Eight digits and the other keys follow.
"""
AFTER_SEAL = 20
"""The offset of the other keys."""
_BRACE = crc32c(b"{")


def canonical(json_value: object) -> bytes:
    """A value as canonical JSON: sorted keys, one line, ASCII only."""
    return _canonical(json_value).encode()


def seal(entry: dict[str, Any]) -> str:
    """The CRC32C of the canonical form of an entry or a manifest, in hexadecimal: its "crc"."""
    return f"{crc32c(canonical(entry)):08x}"


def sealed_line(entry: dict[str, Any]) -> bytes:
    """An entry with its own seal, in canonical form, as a line."""
    text = canonical(entry)
    return b'%b%08x", %b\n' % (_SEALED, crc32c(text), text[1:])


def is_as_written(line: bytes) -> bool:
    """Whether a line is byte for byte one of ``sealed_line``:
    it is proved without encoding it again.
    """
    return (
        line.startswith(_SEALED)
        and b'%08x", ' % crc32c(line[AFTER_SEAL:-1], _BRACE) == line[9:AFTER_SEAL]
    )


@contextlib.contextmanager
def many_objects() -> Iterator[None]:
    """Pause the garbage collector: a million objects are made here, none in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class ShardEntry(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """A shard's entry in a file, with or without a seal; the fields are those of ShardInfo."""

    name: str
    fingerprint: str
    records: Count
    size: Count
    digest: str
    set_aside: tuple[str, ...]
    repairs: tuple[str, ...]
    file_digest: str = ""
    warned: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    crc: str = ""

    @property
    def info(self) -> ShardInfo:
        """The entry without its seal."""
        return ShardInfo(*(getattr(self, name) for name in ShardInfo.__struct_fields__))


_decode = Decoder(ShardEntry).decode


def info_dict(info: ShardInfo) -> dict[str, Any]:
    """The JSON form of a ShardInfo, without the file's digest,
    warnings and faults if it has none.
    """
    fields = asdict(info)
    for name in ("file_digest", "warned", "faults"):
        if not fields[name]:
            del fields[name]
    return fields


class Journal:
    """One JSON line per finished shard, appended once the shard has its final name.

    A line survives the end of the process as soon as it is appended, and a power cut after
    ``sync``. In an object store, nothing can be appended: both hold after ``sync``, which writes a
    part of its own there. Each line has its own CRC32C: a line that a crash cut short, or that has
    changed since, is skipped. A later line for the same shard replaces an earlier one.

    Each writer may have its own ``part``, a file next to ``path``. All parts are read as one. For
    each shard the own part takes precedence, unless one of the ``rivals`` is chosen.
    """

    def __init__(self, path: AnyPath, part: str = "") -> None:
        self.part = part
        self._path = path.with_name(f"{path.stem}-{part}{path.suffix}") if part else path
        self._infos: dict[str, ShardInfo] = {}
        self._others = [part_path for part_path in journal_parts(path) if part_path != self._path]
        self._parts_of: dict[str, dict[AnyPath, ShardInfo]] = {}
        with many_objects():
            for part_path in (*self._others, self._path):
                for info in _read_lines(part_path):
                    self._take(part_path, info)
        self._appender: Appender | None = None

    def __enter__(self) -> Journal:
        """Return the journal; the file is opened by the first append."""
        return self

    def __exit__(self, *_: object) -> None:
        """Make everything durable and close the file."""
        self.sync()
        if self._appender is not None:
            self._appender.close()
            self._appender = None

    def get(self, name: str) -> ShardInfo | None:
        """The entry of a shard, or None."""
        return self._infos.get(name)

    def forget(self, names: Iterable[str]) -> None:
        """Treat these shards as not done; their lines in the file remain
        until they are appended again.
        """
        for name in names:
            self._infos.pop(name, None)

    def names(self) -> Iterable[str]:
        """Every shard with an entry."""
        return self._infos.keys()

    def rivals(self) -> dict[str, list[ShardInfo]]:
        """The shards with different entries in different parts, and these entries:
        the own part last.
        """
        rivals: dict[str, list[ShardInfo]] = {}
        for name, parts in self._parts_of.items():
            entries = list(parts.values())
            if any(entry != entries[0] for entry in entries):
                rivals[name] = entries
        return rivals

    def choose(self, info: ShardInfo) -> None:
        """Use this entry of a shard, which is proven."""
        self._infos[info.name] = info

    def take_in(self) -> None:
        """Make the valid entries of the ranks' parts durable in the own part,
        and remove their parts.
        """
        theirs = {path for path in self._others if path.stem.partition("-")[2].startswith("rank-")}
        for name, parts in list(self._parts_of.items()):
            info = self._infos.get(name)
            if info and info not in [entry for path, entry in parts.items() if path not in theirs]:
                self.append(info)
        self.sync()
        for path in theirs:
            path.unlink(missing_ok=True)

    @staticmethod
    def entries(parts: Iterable[AnyPath]) -> list[ShardInfo]:
        """Every entry of these files that is as it was written, in order."""
        with many_objects():
            return [info for path in parts for info in _read_lines(path)]

    @staticmethod
    def rewrite(path: AnyPath, infos: Iterable[ShardInfo]) -> None:
        """Replace the lines of one file, durably; its other parts stay."""
        lines = [sealed_line(info_dict(info)) for info in infos]
        if lines or path.exists():
            save_bytes(path, b"".join(lines))

    def append(self, info: ShardInfo) -> None:
        """Record a finished shard."""
        if self._appender is None:
            self._appender = append_to(self._path)
        self._appender.append(sealed_line(info_dict(info)))
        self._take(self._path, info)

    def sync(self) -> None:
        """Make every line appended so far durable."""
        if self._appender is not None:
            self._appender.sync()

    def _take(self, path: AnyPath, info: ShardInfo) -> None:
        self._infos[info.name] = info
        if self._others:
            self._parts_of.setdefault(info.name, {})[path] = info


def journal_parts(path: AnyPath) -> list[AnyPath]:
    """Every file of a journal: the main one, whether it exists or not,
    and those of ranks and other writers.
    """
    return sorted({path, *parts_of(path)}, key=str)


def _read_lines(path: AnyPath) -> Iterator[ShardInfo]:
    """Every entry of a journal that is as it was written."""
    for raw_line in plain_lines(path):
        line = raw_line if raw_line.endswith(b"\n") else raw_line + b"\n"
        if is_as_written(
            line
        ):  # otherwise a crash cut this line short: its shard counts as not done
            with contextlib.suppress(ValueError):
                yield _decode(line).info
