"""ComparedSet: shards in a folder, or a manifest alone -> the digest of each shard, and which records it holds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import ShardInfo
from imagenet_prep.reading.shard import Record, Shard
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.crc import crc32c
from imagenet_prep.tfrecord.framing import FOOTER, HEADER, OVERHEAD, Framed, mask
from imagenet_prep.tfrecord.index import Index, decode


@dataclass(frozen=True, slots=True)
class ComparedSet:
    """Shards to be compared with others.

    Args:
        place: the folder, or the manifest.
        shards: the size of each in bytes by name; of a manifest alone, as it says.
        recorded: what is on record of those whose files are of that size.
        has_files: whether there is more than the manifest.
    """

    place: AnyPath
    shards: Mapping[str, int]
    recorded: Mapping[str, ShardInfo]
    has_files: bool

    @classmethod
    def of(cls, place: AnyPath) -> ComparedSet:
        """That of a folder of shards, whoever made them, or of a manifest that lies anywhere.

        Raises:
            UsageError: there is nothing of that name.
            InputError: it holds no shards, or the manifest is damaged.
        """
        if place.is_file():
            manifest = load_manifest(place)
            assert manifest is not None, "the file is there"
            return cls(place, {name: info.size for name, info in manifest.shards.items()}, manifest.shards, False)
        if not place.is_dir():
            raise UsageError(f"{place} is not there", "expected a folder of shards, or a manifest.json")
        layout = Layout(place)
        found = load_manifest(layout.manifest_path)
        sizes = layout.find_shards(_splits(layout, found))
        if not sizes:
            raise InputError(f"{place} holds no shards", "expected files such as train-00000-of-01024")
        recorded = {name: info for name, info in found.shards.items() if sizes.get(name) == info.size} if found else {}
        return cls(place, sizes, recorded, True)

    def of_split(self, split: str) -> list[str]:
        """Its shards of one split, in order."""
        parsed = ((parse_shard_name(name), name) for name in self.shards)
        return [name for place, name in sorted((each, name) for each, name in parsed if each and each[0] == split)]

    @property
    def splits(self) -> list[str]:
        """Its splits, by name."""
        return sorted({parsed[0] for parsed in map(parse_shard_name, self.shards) if parsed})

    def digest(self, name: str) -> str:
        """The digest of a shard: as recorded, else as its framing gives it, for which no image is read."""
        info = self.recorded.get(name)
        return info.digest if info else self.records(name).digest

    def count(self, name: str) -> int:
        """How many records a shard holds."""
        info = self.recorded.get(name)
        return info.records if info else len(self.records(name).lengths)

    def records(self, name: str) -> Index:
        """The records of a shard in order: by its index, where that is the recorded shard's, else by their headers.

        A record without a name of its own has "" for one.

        Raises:
            InputError: no record can be found from some byte on.
        """
        layout, info = Layout(self.place), self.recorded.get(name)
        if info is not None:
            with contextlib.suppress(InputError):
                index = decode(*(layout.indexes.read(path.name) for path in layout.index_paths(name)))
                if index is not None and index.digest == info.digest:
                    return index
        return _by_headers(Shard.open(layout.shard_path(name)))

    def record(self, name: str, number: int, offset: int, length: int) -> Record:
        """A record by its number, its byte offset and its length in bytes with framing.

        Raises:
            InputError: its data are damaged.
        """
        shard = Shard.open(Layout(self.place).shard_path(name))
        if shard.compression != "none":
            return next(shard.sound(each) for each in shard.followed() if each.number == number)
        data = shard.intact_at(offset, offset + length)
        damaged = Framed(number, offset, shard.view[:0], 0, False)
        return shard.sound(damaged) if data is None else Record(shard, number, offset, data)


def _by_headers(shard: Shard) -> Index:
    index = Index()
    with shard.naming():
        for number, (offset, data) in enumerate(shard.unchecked()):
            if shard.compression == "none":
                end = offset + HEADER.size + len(data)
                (crc,) = FOOTER.unpack(shard.view[end : end + FOOTER.size])
            else:
                crc = mask(crc32c(data))
            index.add(len(data) + OVERHEAD, crc, _name_of(Record(shard, number, offset, data)))
    return index


def _name_of(record: Record) -> str:
    """The name of its image's file; "" of what is no image's record."""
    try:
        return record.filename
    except InputError:
        return ""


def _splits(layout: Layout, manifest: Manifest | None) -> list[str]:
    if manifest is not None:
        return list(manifest.dataset.splits)
    return sorted({parsed[0] for parsed in map(parse_shard_name, layout.shards.list()) if parsed})
