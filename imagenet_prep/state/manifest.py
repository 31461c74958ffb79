"""The journal of finished shards and the manifest of a finished conversion."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from imagenet_prep.errors import InputError, Phrase
from imagenet_prep.model import MadeFrom, ShardInfo
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.durable import fsync_dir, write_all
from imagenet_prep.storage.plain import find_plain, load_json
from imagenet_prep.storage.refusals import unreadable, writing
from imagenet_prep.tfrecord.crc import crc32c
from imagenet_prep.tfrecord.inception import PROMISE

SCHEMA = 2
"""Of the manifest. Schema 1 described the data set only where a recipe had made it, under "recipe"."""

_KEYS = ("version", "dataset", "settings", "sources", "totals", "shards")

ILSVRC2012, RECIPE = "ILSVRC2012", "recipe"
"""The kinds of data sets: by whose rules one is checked and made again."""

_SPLITS = ["train", "validation"]
_UNSAID: dict[str, Any] = {"kind": ILSVRC2012, "name": "ILSVRC2012", "splits": _SPLITS, "features": PROMISE}
"""The data set of a manifest of schema 1 that describes none."""


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
                name, fingerprint = _texts([value["name"], value["fingerprint"]])
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
    _texts(list(value.values()))
    return MadeFrom(**value)


def shard_info(value: dict[str, Any]) -> ShardInfo:
    """A ShardInfo from its JSON form; raises TypeError, KeyError or ValueError if it isn't one."""
    lists = {"set_aside": _texts(value["set_aside"]), "repairs": _texts(value.get("repairs", []))}
    info = ShardInfo(**{**value, **lists})
    _texts([info.name, info.fingerprint, info.digest, info.file_digest])
    _counts(info.records, info.size)
    return info


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts that UTF-8 can write; anything else raises TypeError or ValueError."""
    if type(value) is not list or not all(type(each) is str for each in value):
        raise TypeError("expected texts")
    "".join(value).encode()
    return tuple(value)


def _counts(*values: object) -> None:
    """Raise TypeError unless each is a whole number, 0 or more, that 64 bits hold."""
    if not all(type(each) is int and 0 <= each < 1 << 63 for each in values):
        raise TypeError("expected numbers")


def _split_totals(value: dict[str, Any]) -> SplitTotals:
    totals = SplitTotals(**value)
    _counts(*dataclasses.astuple(totals))
    return totals


@dataclasses.dataclass(frozen=True, slots=True)
class DatasetEntry:
    """What a manifest says of its data set.

    ``kind`` tells by which rules it is checked and made again; ``splits`` are in order, each is what the names of its
    shards begin with. ``features`` are what every record holds: by name its "kind", whether it is "optional", and how
    many "values" it has (None: any number). ``turned`` counts, by split, the images that were turned upright.
    ``classes`` are those of a part of ILSVRC2012, or of all of it with other labels: the label of each, by its wnid.
    """

    kind: str
    name: str
    splits: tuple[str, ...]
    features: Mapping[str, Mapping[str, Any]]
    turned: Mapping[str, int] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, int] = dataclasses.field(default_factory=dict)


def _dataset(value: dict[str, Any]) -> DatasetEntry:
    """What a manifest says of its data set, once it is known to be of its form."""
    if value["schema"] == 1:
        earlier = value.get("recipe")
        known: dict[str, Any] = {"kind": RECIPE, "name": "data set", "splits": sorted(value["totals"])}
        found: dict[str, Any] = _UNSAID if earlier is None else {**known, **earlier}
    else:
        found = {"classes": {}, **value["dataset"]}
        if found.keys() != {field.name for field in dataclasses.fields(DatasetEntry)}:
            raise ValueError("dataset")
    if found["kind"] not in (ILSVRC2012, RECIPE):
        raise ValueError("kind")
    features, turned, classes = found["features"], found.get("turned", {}), found.get("classes", {})
    kinds = (each["kind"] for each in features.values())
    splits = _texts(found["splits"])
    _texts([found["kind"], found["name"], *features, *kinds, *classes])
    for each in features.values():
        if type(each["optional"]) is not bool:
            raise TypeError("expected true or false")
        _counts(each["values"] or 0)
    _counts(*turned.values(), *classes.values())
    return DatasetEntry(found["kind"], found["name"], splits, dict(features), dict(turned), dict(classes))


def _entry_dict(entry: DatasetEntry) -> dict[str, Any]:
    """The JSON form of a DatasetEntry: without classes, if none are told, it is that of earlier versions."""
    value = dataclasses.asdict(entry)
    if not entry.classes:
        del value["classes"]
    return value


def info_dict(info: ShardInfo) -> dict[str, Any]:
    """The JSON form of a ShardInfo: without a file's digest, if there is none, it is that of earlier versions."""
    value = dataclasses.asdict(info)
    if not info.file_digest:
        del value["file_digest"]
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class SplitTotals:
    """What was made of one split: images, classes, boxes, shards; ``expected`` images in the whole data set."""

    images: int
    expected: int
    classes: int
    boxes: int
    shards: int


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """What was made, from what, how. ``settings`` are those that decide the bytes; ``shards`` by name.

    ``crc`` is what the file says of all this: None if an earlier version wrote it.
    """

    version: str
    dataset: DatasetEntry
    settings: dict[str, Any]
    sources: dict[str, Any]
    totals: dict[str, SplitTotals]
    shards: dict[str, ShardInfo]
    crc: str | None = dataclasses.field(default=None, compare=False)

    def save(self, path: Path) -> bool:
        """Write it atomically, sealed, unless it is there already; say whether it was written."""
        value = self._json()
        return save_json(path, {**value, "crc": seal(value)})

    @property
    def is_sealed(self) -> bool:
        """Whether it is as its ``crc`` says; one of an earlier version, which has none, is believed."""
        return self.crc is None or self.crc == seal(self._json())

    def _json(self) -> dict[str, Any]:
        """All but its CRC as JSON gives it back: keys are texts, and sorted as such."""
        shards = {name: info_dict(info) for name, info in self.shards.items()}
        value = {"schema": SCHEMA, **{key: getattr(self, key) for key in _KEYS}, "shards": shards}
        totals = {split: dataclasses.asdict(total) for split, total in self.totals.items()}
        dataset = _entry_dict(self.dataset)
        found: dict[str, Any] = json.loads(json.dumps({**value, "dataset": dataset, "totals": totals}))
        return found

    @property
    def has_set_aside(self) -> bool:
        """Whether images are missing from its shards because ``skip_bad`` set them aside."""
        return any(info.set_aside for info in self.shards.values())


def load_manifest(path: Path) -> Manifest | None:
    """The manifest of a conversion, or None if there is none.

    Raises:
        InputError: there is one, but it can't be understood, or is not what was written.
    """
    manifest = load_unproven(path)
    if manifest is not None and not manifest.is_sealed:
        raise changed(path)
    return manifest


def usable_manifest(path: Path) -> Manifest | None:
    """The same; None, too, where it can't be understood or is not what was written: verify says so."""
    with contextlib.suppress(InputError):
        return load_manifest(path)
    return None


def changed(path: Path, fault: str = "its content does not give the crc in it") -> InputError:
    """The error for a manifest that is not what was written."""
    return InputError(
        f"{path} has changed since it was written",
        fault,
        Phrase("run the same {convert} again: it writes it again, and finished shards are kept"),
    )


def load_unproven(path: Path) -> Manifest | None:
    """The same, whatever its ``crc`` is: for those who can correct it.

    Raises:
        InputError: there is one, but it can't be understood.
    """
    try:
        if not path.exists():
            return None
    except OSError as error:  # the folder can't be searched
        raise unreadable(path, error) from error
    value = load_json(path)
    try:
        is_earlier = value["schema"] == 1
        keys = {"schema", "recipe", *_KEYS} - {"dataset"} if is_earlier else {"schema", "crc", *_KEYS}
        if value["schema"] not in (1, SCHEMA) or (value.keys() ^ keys) - ({"recipe"} if is_earlier else set()):
            raise ValueError("schema")
        return Manifest(
            version=str(value["version"]),
            dataset=_dataset(value),
            settings=dict(value["settings"]),
            sources=dict(value["sources"]),
            totals={split: _split_totals(total) for split, total in value["totals"].items()},
            shards={name: shard_info(info) for name, info in value["shards"].items()},
            crc=None if is_earlier else str(value["crc"]),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        other = value.get("schema", SCHEMA) if isinstance(value, dict) else SCHEMA
        raise InputError(
            f"{path} can't be understood" + (f": it is of schema {other!r}" if other != SCHEMA else ""),
            f"expected a manifest of schema {SCHEMA}",
            Phrase("remove it and run the same {convert} again: finished shards are kept"),
        ) from error
