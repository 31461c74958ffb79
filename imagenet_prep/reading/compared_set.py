"""ComparedSet: the shards of a folder, or the entries of a manifest, as diff compares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import ShardInfo
from imagenet_prep.reading.shard import Shard
from imagenet_prep.state.export_record import refuse_export
from imagenet_prep.state.indexes import not_done, read_written
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.files import absence_of
from imagenet_prep.storage.layout import (
    Layout,
    by_number,
    expected_names,
    parse_shard_name,
    split_of,
)
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord import crc32c
from imagenet_prep.tfrecord.content import name_in
from imagenet_prep.tfrecord.framing import OVERHEAD, Index


class RecordSpan(NamedTuple):
    """A record of a shard: its number, its byte offset and its length in bytes with framing."""

    number: int
    offset: int
    length: int


class ComparedSet(Struct, frozen=True):
    """A set of shards to compare.

    Args:
        place: the folder, or the manifest.
        shards: the size of each in bytes by name; the recorded size if there is only a manifest.
        recorded: the recorded entries of shards whose files have the recorded size, index and last
            record.
        homes: the set of each recorded shard.
        has_files: whether there are shards, not only a manifest.
        problems: why a set of the folder is not a whole one.
        unproved: the shards whose data is read; manifest and index are not asked.
    """

    place: AnyPath
    shards: Mapping[str, int]
    recorded: Mapping[str, ShardInfo]
    homes: Mapping[str, Layout]
    has_files: bool
    problems: tuple[str, ...] = ()
    unproved: frozenset[str] = frozenset()

    @classmethod
    def read(cls, place: AnyPath) -> ComparedSet:
        """Open a folder of shards, made by any tool, or a manifest anywhere.

        Raises:
            UsageError: the place does not exist.
            InputError: it has no shards, or the manifest that is named is damaged.
        """
        if place.is_file():
            return cls._read_manifest(place)
        if place.is_dir():
            return cls._read_folder(place)
        raise UsageError(absence_of(place), "expected a folder of shards, or a manifest.json")

    @classmethod
    def _read_manifest(cls, place: AnyPath) -> ComparedSet:
        manifest = _load_named(place)
        sizes = {name: info.size for name, info in manifest.shards.items()}
        return cls(place, sizes, manifest.shards, homes={}, has_files=False)

    @classmethod
    def _read_folder(cls, place: AnyPath) -> ComparedSet:
        layout = Layout(place)
        sizes = layout.find_shards()
        if not sizes:
            refuse_export(place)
            raise InputError(f"{place} holds no shards", expected_names())
        recorded: dict[str, ShardInfo] = {}
        homes: dict[str, Layout] = {}
        problems: list[str] = []
        for set_layout in layout.sets():
            state = SetState.read(set_layout)
            if not state.is_usable and state.kind != "nothing":
                problems.append(state.sentence)
            infos = _infos_of_done(state)
            recorded |= infos
            homes |= dict.fromkeys(infos, state.layout)
        return cls(place, sizes, recorded, homes, True, tuple(problems))

    def of_split(self, split: str) -> list[str]:
        """The shards of one split, in order."""
        return sorted((name for name in self.shards if split_of(name) == split), key=by_number)

    @property
    def splits(self) -> list[str]:
        """The names of all splits."""
        return sorted(set(map(split_of, self.shards)) - {""})

    def without_trust(self, names: Collection[str]) -> ComparedSet:
        """The same set, in which manifest and index of these shards are not asked; a manifest alone
        stays as it is.
        """
        if not self.has_files:
            return self
        recorded = {name: info for name, info in self.recorded.items() if name not in names}
        return replace(self, recorded=recorded, unproved=frozenset(names) & self.shards.keys())

    def entry(self, name: str) -> tuple[str, int]:
        """The digest and the number of records of a shard:
        recorded, or from its framing without reading an image.
        """
        info = self.recorded.get(name)
        if info:
            return info.digest, info.records
        index = self.compared_index(name)
        return index.digest, len(index.names)

    def compared_index(self, name: str) -> Index:
        """As ``index``; of an unproved shard every record is read, and one whose data does not
        match its CRC has an entry that no sound record has.
        """
        if name in self.unproved:
            return _by_data(self.open(name, in_order=True))
        return self.index(name)

    def index(self, name: str) -> Index:
        """The records of a shard in order: from its index if that matches, otherwise from the
        headers.

        A record without a name has "".

        Raises:
            InputError: from some byte on, no record can be found.
        """
        layout, info = self.homes.get(name, Layout(self.place)), self.recorded.get(name)
        index = read_written(layout, info) if info else None
        return index or _by_headers(self.open(name))

    def open(self, name: str, *, in_order: bool = False) -> Shard:
        """A shard; raises InputError if it can't be opened."""
        return Shard.open(Layout(self.place).shard_path(name), in_order=in_order)

    def data(self, name: str, places: Sequence[RecordSpan]) -> Iterator[memoryview | None]:
        """The data of some records of a shard, in ascending order; None for a record that is
        damaged.

        Raises:
            InputError: the records of a compressed shard can't be followed.
        """
        shard = self.open(name, in_order=True)
        if shard.compression == "none":
            for place in places:
                yield shard.intact_at(place.offset, place.offset + place.length)
            return
        framed = shard.followed()
        for place in places:
            record = next(record for record in framed if record.number == place.number)
            yield record.data if record.intact else None

    def sound_data(self, name: str, place: RecordSpan) -> memoryview:
        """The data of one record; raises InputError if it is damaged, and says where."""
        (data,) = self.data(name, [place])
        shard = self.open(name)
        if data is None:
            reason = "its length or its data does not match its CRC"
            raise shard.damaged(place.number, place.offset, reason)
        return data


def _load_named(place: AnyPath) -> Manifest:
    """The manifest in a file that the user names: the remedy is not that of a damaged set.

    Raises:
        UsageError: the file is a shard.
        InputError: it is no manifest, or a damaged one.
    """
    expected = "expected a folder of shards, or a manifest.json"
    if parse_shard_name(place.name):
        raise UsageError(f"{place} is one shard", expected, f"name its folder: {place.parent}")
    try:
        manifest = load_manifest(place)
    except InputError as error:
        hint = "name another file, or the folder that holds the shards"
        raise InputError(error.what, error.detail, hint) from error
    assert manifest is not None, "the file exists"
    return manifest


def _infos_of_done(state: SetState) -> dict[str, ShardInfo]:
    """The entries of the recorded shards that are done."""
    if state.manifest is None:
        return {}
    infos = state.manifest.shards
    exchanged = set(not_done(state.layout, state.manifest, infos))
    return {name: info for name, info in infos.items() if name not in exchanged}


def _by_headers(shard: Shard) -> Index:
    index = Index()
    for _, data, crc in shard.stored():
        index.add(len(data) + OVERHEAD, crc, name_in(data))
    return index


def _by_data(shard: Shard) -> Index:
    index = Index()
    for framed in shard.followed():
        crc = framed.crc
        if not framed.intact:
            crc = crc32c(framed.data, crc)
        index.add(len(framed.data) + OVERHEAD, crc, name_in(framed.data))
    return index
