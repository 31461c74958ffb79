"""The journal of finished shards: an entry a shard, a line each."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from imagenet_prep.model import MadeFrom, ShardInfo
from imagenet_prep.storage.durable import fsync_dir, write_all
from imagenet_prep.storage.plain import find_plain
from imagenet_prep.storage.refusals import writing
from imagenet_prep.tfrecord.crc import crc32c


class Journal:
    """One JSON line a finished shard, appended when the shard stands under its final name.

    A line survives the end of the process as soon as it is appended, and the end of the system after ``sync``. Each
    ends with its own CRC32C: one that a crash cut short, or that has changed since, is skipped. Lines of earlier
    versions have none; ``is_sealed`` tells. A later line for the same shard replaces an earlier one.

    What a shard was made from stands in a line of its own before its entry, bound to it by the fingerprint: versions
    that know of no such thing pass over that line, and still read the entry. One version had it within the entry.

    Each writer may have a ``part`` of its own, a file beside ``path``: all parts are read as one, and what the own part
    says of a shard goes before what the others say.
    """

    def __init__(self, path: Path, part: str = "") -> None:
        self._path = path.with_name(f"{path.stem}-{part}{path.suffix}") if part else path
        self._infos: dict[str, ShardInfo] = {}
        self._made_from: dict[str, MadeFrom | None] = {}
        self._unsealed: set[str] = set()
        others = {path, *path.parent.glob(f"{path.stem}-*{path.suffix}")} - {self._path}
        for each in (*sorted(others), self._path):
            for info, made_from, is_sealed in _read_lines(each):
                self._infos[info.name], self._made_from[info.name] = info, made_from
                (self._unsealed.discard if is_sealed else self._unsealed.add)(info.name)
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        """Nothing to do: the file is opened by the first append."""
        return self

    def __exit__(self, *_: object) -> None:
        """Make everything durable and close the file."""
        self.sync()
        if self._file is not None:
            self._file.close()
            self._file = None

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

    def append(self, info: ShardInfo, made_from: MadeFrom | None = None) -> None:
        """Record a finished shard, and what it was made from."""
        if self._file is None:
            self._file = self._open()
        with writing(self._path):
            write_all(self._file.fileno(), [_lines(info, made_from)])
        self._infos[info.name], self._made_from[info.name] = info, made_from
        self._unsealed.discard(info.name)

    def sync(self) -> None:
        """Make every line appended so far durable."""
        if self._file is not None:
            with writing(self._path):
                os.fsync(self._file.fileno())

    def _open(self) -> IO[bytes]:
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("a+b", buffering=0)
        if file.tell() == 0:
            fsync_dir(self._path.parent)
        else:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        return file


def _lines(info: ShardInfo, made_from: MadeFrom | None) -> bytes:
    """An entry as lines of the journal: what its shard was made from, then the entry itself, each sealed."""
    values = [info_dict(info)]
    if made_from is not None:
        beside = {"items": made_from.items, "times": made_from.times}
        values.insert(0, {"name": info.name, "fingerprint": info.fingerprint, "made_from": beside})
    lines = (json.dumps({**value, "crc": seal(value)}, sort_keys=True) for value in values)
    return "".join(f"{line}\n" for line in lines).encode()


def seal(value: dict[str, Any]) -> str:
    """The CRC32C of the canonical form of an entry, or of a manifest, in hexadecimal: its "crc"."""
    return f"{crc32c(json.dumps(value, sort_keys=True).encode()):08x}"


def _read_lines(path: Path) -> Iterator[tuple[ShardInfo, MadeFrom | None, bool]]:
    """Every sound entry of a journal that can be understood, what it was made from, and whether it is sealed."""
    beside: dict[tuple[str, str], MadeFrom] = {}
    for line in (find_plain(path) or b"").splitlines():
        try:
            value = json.loads(line)
            crc = value.pop("crc", None)
            if crc is not None and crc != seal(value):
                continue
            made_from = _made_from(value.pop("made_from", None))
            if made_from is not None and value.keys() == {"name", "fingerprint"}:
                name, fingerprint = texts([value["name"], value["fingerprint"]])
                beside[name, fingerprint] = made_from
                continue
            info = shard_info(value)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # a crash cut this line short: its shard counts as not done
        yield info, made_from or beside.get((info.name, info.fingerprint)), crc is not None


def _made_from(value: Any) -> MadeFrom | None:
    """What a line says that its shard was made from; raises TypeError or ValueError if it isn't of that form."""
    if value is None:
        return None
    texts(list(value.values()))
    return MadeFrom(**value)


def shard_info(value: dict[str, Any]) -> ShardInfo:
    """A ShardInfo from its JSON form; raises TypeError, KeyError or ValueError if it isn't one."""
    lists = {"set_aside": texts(value["set_aside"]), "repairs": texts(value.get("repairs", []))}
    info = ShardInfo(**{**value, **lists})
    texts([info.name, info.fingerprint, info.digest, info.file_digest])
    counts(info.records, info.size)
    return info


def texts(value: object) -> tuple[str, ...]:
    """A list of texts that UTF-8 can write; anything else raises TypeError or ValueError."""
    if type(value) is not list or not all(type(each) is str for each in value):
        raise TypeError("expected texts")
    "".join(value).encode()
    return tuple(value)


def counts(*values: object) -> None:
    """Raise TypeError unless each is a whole number, 0 or more, that 64 bits hold."""
    if not all(type(each) is int and 0 <= each < 1 << 63 for each in values):
        raise TypeError("expected numbers")


def info_dict(info: ShardInfo) -> dict[str, Any]:
    """The JSON form of a ShardInfo: without a file's digest, if there is none, it is that of earlier versions."""
    value = dataclasses.asdict(info)
    if not info.file_digest:
        del value["file_digest"]
    return value
