"""SourceSet: a finished set whose records go to another format. SourceShard: one of its shards."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.reading.shard import Record, Shard, remedy
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name, shard_name
from imagenet_prep.storage.location import local_path
from imagenet_prep.tfrecord.framing import framing_digest


@dataclass(frozen=True, slots=True)
class SourceShard:
    """Shard ``index`` of a split: its file, of ``size`` bytes; of the manifest its digest ("": none) and records."""

    path: Path
    split: str
    index: int
    size: int
    digest: str = ""
    recorded: int | None = None

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.name

    @property
    def identity(self) -> list[object]:
        """What tells it from another shard of this name: its digest, else size and time."""
        return [self.name, self.digest] if self.digest else [self.name, self.size, self.path.stat().st_mtime_ns]

    def count(self) -> int:
        """How many records it holds, by the manifest, else by their headers."""
        return len(Shard.open(self.path).offsets()) - 1 if self.recorded is None else self.recorded

    def records(self) -> Iterator[Record]:
        """Every record, its CRC checked, and in the end that they are those on record.

        Raises:
            InputError: the shard can't be opened; a record is damaged, which the error names; or the records are not
                those that were written.
        """
        shard = Shard.open(self.path, in_order=True)
        lengths, crcs = array("Q"), array("I")
        for framed in shard.followed():
            yield shard.sound(framed)
            lengths.append(len(framed.data))
            crcs.append(framed.crc)
        if self.digest and framing_digest(lengths, crcs) != self.digest:
            raise InputError(
                f"{self.path} does not hold the records that its manifest says",
                f"expected the digest {self.digest[:12]}, got that of {len(crcs):,} sound records that are others",
                remedy(self.path),
            )


@dataclass(frozen=True, slots=True)
class SourceSet:
    """A finished set: where it is, its manifest, if it has one, and its shards, split by split."""

    layout: Layout
    manifest: Manifest | None
    shards: tuple[SourceShard, ...]

    @classmethod
    def load(cls, layout: Layout) -> SourceSet:
        """The set of a folder, whoever made it.

        Raises:
            InputError: there are no shards, or one is missing.
        """
        manifest = load_manifest(layout.manifest_path)
        splits: Sequence[str] = manifest.dataset.splits if manifest else ()
        names = [*layout.shards.list(), *(manifest.shards if manifest else ())]
        counts = {parsed[0]: parsed[2] for parsed in map(parse_shard_name, names) if parsed}
        if not counts:
            raise InputError(
                f"no shards in {layout.output_dir}",
                "expected files such as train-00000-of-01024",
                "name the folder that holds them",
            )
        found = []
        for split in sorted(counts, key=lambda each: (splits.index(each) if each in splits else len(splits), each)):
            ShardSet(layout.output_dir, split)  # it refuses a set that is not whole, or two of one name
            found += [_shard(layout, manifest, split, index, counts[split]) for index in range(counts[split])]
        return cls(layout, manifest, tuple(found))

    @property
    def splits(self) -> dict[str, list[SourceShard]]:
        """The shards of each split."""
        found: dict[str, list[SourceShard]] = {}
        for shard in self.shards:
            found.setdefault(shard.split, []).append(shard)
        return found


def _shard(layout: Layout, manifest: Manifest | None, split: str, index: int, count: int) -> SourceShard:
    name = shard_name(split, index, count)
    info = manifest.shards.get(name) if manifest else None
    facts = (info.digest, info.records) if info else ("", None)
    return SourceShard(local_path(layout.shard_path(name)), split, index, layout.shards.size(name) or 0, *facts)
