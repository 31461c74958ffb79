"""The journal of finished shards: an entry a shard, a line each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from imagenet_prep.model import MadeFrom, ShardInfo
from imagenet_prep.state.entries import (
    Key,
    info_dict,
    is_as_written,
    many_objects,
    read_made_from,
    seal,
    sealed_line,
    shard_info,
    texts,
)
from imagenet_prep.storage.files import append_to, parts_of, plain_lines
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.store import Appender

Entry: TypeAlias = "tuple[ShardInfo, MadeFrom | None]"
"""A finished shard, and what it was made from."""


class Journal:
    """One JSON line a finished shard, appended when the shard stands under its final name.

    A line survives the end of the process as soon as it is appended, and the end of the system after ``sync``; in an
    object store, to which nothing can be appended, both after ``sync``, which puts a part of its own there. Each
    ends with its own CRC32C: one that a crash cut short, or that has changed since, is skipped. Lines of earlier
    versions have none; ``is_sealed`` tells. A later line for the same shard replaces an earlier one.

    What a shard was made from stands in a line of its own before its entry, bound to it by the fingerprint: versions
    that know of no such thing pass over that line, and still read the entry. One version had it within the entry.

    Each writer may have a ``part`` of its own, a file beside ``path``: all parts are read as one, and what the own part
    says of a shard goes before what the others say, unless something is chosen among the ``rivals``.
    """

    def __init__(self, path: AnyPath, part: str = "") -> None:
        self._path = path.with_name(f"{path.stem}-{part}{path.suffix}") if part else path
        self._infos: dict[str, ShardInfo] = {}
        self._made_from: dict[str, MadeFrom | None] = {}
        self._unsealed: set[str] = set()
        self._others = sorted({path, *parts_of(path)} - {self._path})
        self._parts_of: dict[str, dict[AnyPath, Entry]] = {}
        with many_objects():
            for each in (*self._others, self._path):
                for info, made_from, is_sealed in _read_lines(each):
                    if self._others:
                        self._parts_of.setdefault(info.name, {})[each] = info, made_from
                    self._infos[info.name], self._made_from[info.name] = info, made_from
                    (self._unsealed.discard if is_sealed else self._unsealed.add)(info.name)
        self._appender: Appender | None = None

    def __enter__(self) -> Journal:
        """Nothing to do: the file is opened by the first append."""
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

    def made_from(self, name: str) -> MadeFrom | None:
        """What a shard was made from; None where an earlier version didn't say, or there is no entry."""
        return self._made_from.get(name)

    def is_sealed(self, name: str) -> bool:
        """Whether the entry of a shard is proven by a CRC of its own."""
        return name in self._infos and name not in self._unsealed

    def forget_contradicted(self, infos: Mapping[str, ShardInfo]) -> None:
        """Forget each entry that is not sealed and that another record contradicts: one of the two has changed."""
        self.forget([name for name in self._unsealed if infos.get(name, self._infos[name]) != self._infos[name]])

    def forget(self, names: Iterable[str]) -> None:
        """Take these shards for not done; what the file says of them stays until they are appended again."""
        for name in names:
            self._infos.pop(name, None)
            self._made_from.pop(name, None)
            self._unsealed.discard(name)

    def names(self) -> Iterable[str]:
        """Every shard with an entry."""
        return self._infos.keys()

    def rivals(self) -> dict[str, list[Entry]]:
        """The shards of which parts say different things, and what: the own part last."""
        found = ((name, list(parts.values())) for name, parts in self._parts_of.items())
        return {name: entries for name, entries in found if any(entry != entries[0] for entry in entries)}

    def choose(self, name: str, entry: Entry) -> None:
        """Let one of the entries of a shard count: one that is proven."""
        self._infos[name], self._made_from[name] = entry
        self._unsealed.discard(name)

    def take_in(self) -> None:
        """Make what counts of the ranks' parts durable in the own part, and remove theirs."""
        theirs = {path for path in self._others if path.stem.partition("-")[2].startswith("rank-")}
        for name, parts in list(self._parts_of.items()):
            info = self._infos.get(name)
            if info and info not in [entry[0] for path, entry in parts.items() if path not in theirs]:
                self.append(info, self._made_from[name])
        self.sync()
        for path in theirs:
            path.unlink(missing_ok=True)

    def append(self, info: ShardInfo, made_from: MadeFrom | None = None) -> None:
        """Record a finished shard, and what it was made from."""
        if self._appender is None:
            self._appender = append_to(self._path)
        self._appender.append(_lines(info, made_from))
        self._infos[info.name], self._made_from[info.name] = info, made_from
        self._unsealed.discard(info.name)
        if self._others:
            self._parts_of.setdefault(info.name, {})[self._path] = info, made_from

    def sync(self) -> None:
        """Make every line appended so far durable."""
        if self._appender is not None:
            self._appender.sync()


def _lines(info: ShardInfo, made_from: MadeFrom | None) -> bytes:
    """An entry as lines of the journal: what its shard was made from, then the entry itself, each sealed."""
    entry = sealed_line(info_dict(info))
    if made_from is None:
        return entry
    beside = {"items": made_from.items, "times": made_from.times}
    return sealed_line({"name": info.name, "fingerprint": info.fingerprint, "made_from": beside}) + entry


_Line: TypeAlias = tuple["ShardInfo | Key", "MadeFrom | None", bool]


def _read_lines(path: AnyPath) -> Iterator[tuple[ShardInfo, MadeFrom | None, bool]]:
    """Every sound entry of a journal that can be understood, what it was made from, and whether it is sealed."""
    beside: dict[Key, MadeFrom | None] = {}
    lines = plain_lines(path)
    first = next(lines, None)
    if first is None:
        return
    from imagenet_prep.state.quick_entries import decode_line  # a command that finds no journal starts without it

    for line in chain([first], lines):
        found = (decode_line(line) if is_as_written(line) else None) or _read_line(line)
        if found is None:
            continue  # a crash cut this line short: its shard counts as not done
        what, made_from, is_sealed = found
        if isinstance(what, ShardInfo):
            yield what, made_from or beside.get((what.name, what.fingerprint)), is_sealed
        else:
            beside[what] = made_from


def _read_line(line: bytes) -> _Line | None:
    """What any line says; None if that can't be understood, or if it has changed since it was sealed."""
    try:
        value = json.loads(line)
        crc = value.pop("crc", None)
        if crc is not None and crc != seal(value):
            return None
        beside = read_made_from(value.pop("made_from", None))
        if beside is not None and value.keys() == {"name", "fingerprint"}:
            name, fingerprint = texts([value["name"], value["fingerprint"]])
            return (name, fingerprint), beside, True
        return shard_info(value), beside, crc is not None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
