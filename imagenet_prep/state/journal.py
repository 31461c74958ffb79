"""The journal of finished shards: an entry a shard, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from imagenet_prep.model import ShardInfo
from imagenet_prep.state.entries import decode_entry, info_dict, is_as_written, many_objects, sealed_line
from imagenet_prep.storage.files import append_to, parts_of, plain_lines
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.store import Appender


class Journal:
    """One JSON line a finished shard, appended when the shard stands under its final name.

    A line survives the end of the process as soon as it is appended, and the end of the system after ``sync``; in an
    object store, to which nothing can be appended, both after ``sync``, which puts a part of its own there. Each line
    has its own CRC32C: one that a crash cut short, or that has changed since, is skipped. A later line for the same
    shard replaces an earlier one.

    Each writer may have a ``part`` of its own, a file beside ``path``: all parts are read as one, and what the own part
    says of a shard goes before what the others say, unless something is chosen among the ``rivals``.
    """

    def __init__(self, path: AnyPath, part: str = "") -> None:
        self._path = path.with_name(f"{path.stem}-{part}{path.suffix}") if part else path
        self._infos: dict[str, ShardInfo] = {}
        self._others = sorted({path, *parts_of(path)} - {self._path})
        self._parts_of: dict[str, dict[AnyPath, ShardInfo]] = {}
        with many_objects():
            for each in (*self._others, self._path):
                for info in _read_lines(each):
                    self._take(each, info)
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

    def forget(self, names: Iterable[str]) -> None:
        """Take these shards for not done; what the file says of them stays until they are appended again."""
        for name in names:
            self._infos.pop(name, None)

    def names(self) -> Iterable[str]:
        """Every shard with an entry."""
        return self._infos.keys()

    def rivals(self) -> dict[str, list[ShardInfo]]:
        """The shards of which parts say different things, and what: the own part last."""
        found = ((name, list(parts.values())) for name, parts in self._parts_of.items())
        return {name: infos for name, infos in found if any(info != infos[0] for info in infos)}

    def choose(self, info: ShardInfo) -> None:
        """Let one of the entries of a shard count: one that is proven."""
        self._infos[info.name] = info

    def take_in(self) -> None:
        """Make what counts of the ranks' parts durable in the own part, and remove theirs."""
        theirs = {path for path in self._others if path.stem.partition("-")[2].startswith("rank-")}
        for name, parts in list(self._parts_of.items()):
            info = self._infos.get(name)
            if info and info not in [entry for path, entry in parts.items() if path not in theirs]:
                self.append(info)
        self.sync()
        for path in theirs:
            path.unlink(missing_ok=True)

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


def _read_lines(path: AnyPath) -> Iterator[ShardInfo]:
    """Every entry of a journal that is as it was written."""
    for each in plain_lines(path):
        line = each if each.endswith(b"\n") else each + b"\n"
        info = decode_entry(line) if is_as_written(line) else None
        if info is not None:  # else a crash cut this line short: its shard counts as not done
            yield info
