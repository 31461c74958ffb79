"""SourceSet: a finished set to export. Meaning:
the features of its records that describe an image, by role.
"""

from __future__ import annotations

import contextlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.absent_shards import name_folder, no_shards
from imagenet_prep.errors import DamagedRecordError, InputError
from imagenet_prep.model import OnDamaged
from imagenet_prep.reading.absent_sets import refuse_no_folder
from imagenet_prep.reading.indexed import IndexedShard, RecordedShard, find_recorded
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.reading.values import USUAL, Conventions, any_number
from imagenet_prep.registry import known_set, labels_of_classes
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import STATE_NAME, Layout, expected_names, grown_from, split_of
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.framing import Framed

MOST_CLASSES = 100_000
"""So many names of classes at most go into an export's metadata."""


class SourceShard(Struct, frozen=True):
    """Shard ``index`` of a split: its file with ``size`` bytes, and its entry in the manifest, if
    there is one.

    ``conventions`` are those of the set. ``left_out`` is the number of its damaged records, once
    they are known and ``on_damaged`` leaves them out.
    """

    path: AnyPath
    split: str
    index: int
    size: int
    layout: Layout
    recorded: RecordedShard | None = None
    on_damaged: OnDamaged = "refuse"
    conventions: Conventions = USUAL
    left_out: int = 0

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.name

    @property
    def identity(self) -> list[object]:
        """The values that identify it among shards of this name: its digest, or size and time."""
        if self.recorded:
            return [self.name, self.recorded.digest]
        changed_at = self.path.stat().st_mtime_ns
        return [self.name, self.size, changed_at]

    def count(self) -> int:
        """The number of its records without those left out,
        from the manifest or from their headers.
        """
        if self.recorded:
            return self.recorded.records - self.left_out
        stored_count = sum(1 for _ in Shard.open(self.path).stored())
        return stored_count - self.left_out

    def records(
        self, damaged: Callable[[DamagedRecordError], object] = lambda _: None
    ) -> Iterator[Record]:
        """Every record, its CRC checked, and finally that they are the recorded ones.

        ``damaged`` gets the error of each record that is left out.

        Raises:
            DamagedRecordError: a record is damaged, which the error names, and could be left out.
            InputError: the shard can't be opened; no record after a damaged one can be found; or
                the records are not those that were written.
        """
        shard = Shard.open(self.path, in_order=True, conventions=self.conventions)
        if self.on_damaged == "skip" and shard.compression == "none":
            yield from self._by_number(damaged)
            return
        lengths, crcs = array("Q"), array("I")
        for framed in self._followed(shard):
            lengths.append(len(framed.data))
            crcs.append(framed.crc)
            try:
                record = shard.sound(framed)
            except DamagedRecordError as error:
                if self.on_damaged == "refuse":
                    raise
                damaged(error)
            else:
                yield record
        if self.recorded:
            self.recorded.refuse_other(self.path, lengths, crcs)

    def _followed(self, shard: Shard) -> Iterator[Framed]:
        """Every record, intact or not; one after which no other can be found raises InputError."""
        try:
            yield from shard.followed()
        except DamagedRecordError as error:
            if shard.compression == "none" and self._has_offsets():
                raise
            raise InputError(error.what, error.detail, error.hint) from error

    def _has_offsets(self) -> bool:
        """Whether the records of a plain shard can be found without its framing."""
        with contextlib.suppress(InputError):
            IndexedShard(self.layout, self.name, self.recorded).count()
            return True
        return False

    def _by_number(self, damaged: Callable[[DamagedRecordError], object]) -> Iterator[Record]:
        """The records of a plain shard: its index finds those after a damaged length too."""
        shard = IndexedShard(self.layout, self.name, self.recorded, conventions=self.conventions)
        for number in range(shard.count()):
            try:
                record = shard.record(number)
            except DamagedRecordError as error:
                damaged(error)
            else:
                yield record


class SourceSet(Struct, frozen=True):
    """A finished set: its folder, its manifest, if it has one, and its shards by split."""

    layout: Layout
    manifest: Manifest | None
    shards: tuple[SourceShard, ...]

    @classmethod
    def load(cls, layout: Layout, on_damaged: OnDamaged = "refuse") -> SourceSet:
        """The set in a folder, made by any tool; its damaged records are refused or left out.

        Raises:
            InputError: no shards exist, the set is not finished, or the folder holds shards without
                a set.
        """
        refuse_no_folder(layout.output_dir)
        state = SetState.read(layout.one_set())
        layout, manifest = state.layout, state.manifest
        state.refuse_unusable()
        _refuse_orphans(state)
        splits = _splits_in_order(state)
        if not splits:
            raise _no_shards(state)
        lists = any_number(manifest.dataset.features if manifest else {})
        conventions = Conventions(lists, Numbering.find(manifest).first_label)
        shards = []
        for split in splits:
            paths = ShardSet(layout.output_dir, split).paths  # with those that it has grown by
            for index, path in enumerate(paths):
                recorded = find_recorded(manifest, path.name)
                size = state.sizes[path.name]
                shard = SourceShard(
                    path, split, index, size, layout, recorded, on_damaged, conventions
                )
                shards.append(shard)
        return cls(layout, manifest, tuple(shards))

    @property
    def numbering(self) -> Numbering:
        """The labels of all classes by name; without a manifest,
        those of ILSVRC2012 unless the records differ.
        """
        labels = labels_of_classes(self.layout, self.manifest)
        if self.manifest is None and not all(_counts_by(labels, shard) for shard in self.shards):
            labels = {}
        return replace(Numbering.find(self.manifest), labels=labels)

    @property
    def splits(self) -> dict[str, list[SourceShard]]:
        """The shards of each split."""
        splits: dict[str, list[SourceShard]] = {}
        for shard in self.shards:
            splits.setdefault(shard.split, []).append(shard)
        return splits


def _no_shards(state: SetState) -> InputError:
    """The error for a place without shards; a set on this machine has a next step."""
    place = state.layout.output_dir
    if local_or_none(place) is None:
        hint = "name the folder that holds the shards"
        return InputError(f"no shards in {place}", expected_names(), hint)
    return no_shards(state.records, known_set(state.records, state.manifest), name_folder)


def _splits_in_order(state: SetState) -> list[str]:
    """The splits with shards as the manifest lists them, then others by name;
    the shards that a split has grown by are its own.
    """
    names = set(map(split_of, state.sizes))
    splits: list[str] = []
    for name in names:
        grown_split, _ = grown_from(name)
        if grown_split == name or grown_split not in names:
            splits.append(name)
    listed: list[str] = []
    if state.manifest is not None:
        listed = list(state.manifest.dataset.splits)
    places = {split: place for place, split in enumerate(listed)}
    return sorted(splits, key=lambda split: (places.get(split, len(listed)), split))


def _counts_by(labels: Mapping[str, int], shard: SourceShard) -> bool:
    """Whether the first record of a shard has the label of its class, if it names both."""
    with contextlib.suppress(InputError):  # the export itself reports the record
        for record in shard.records():
            if record.wnid is None or record.label is None:
                return True
            return labels.get(record.wnid) == record.label
    return True


def names_from_0(names: Mapping[int, str]) -> list[str]:
    """The name of each number from 0 up, "label_N" if it has none;
    none at all if too many, or if names repeat.
    """
    if not names or max(names) > MOST_CLASSES:
        return []
    all_names = [names.get(number, f"label_{number}") for number in range(max(names) + 1)]
    if len(set(all_names)) < len(all_names):
        return []
    return all_names


def class_names_from_0(numbering: Numbering) -> list[str]:
    """The name of each class, counted from 0; none where ``names_from_0`` gives none."""
    name_by_index = {index: name for name, index in numbering.indices.items()}
    return names_from_0(name_by_index)


def are_lines(names: Iterable[str]) -> bool:
    """Whether a text file can list these names:
    none is empty, has several lines, or spaces at an end.
    """
    return all(name.strip().splitlines() == [name] for name in names)


CLASSES = "classes.json"
"""The file of an export that has the number of each class, counted from 0, by its name (JSON)."""


def encode_classes(numbers: Mapping[str, int]) -> bytes:
    """The content of that file."""
    text = json.dumps(numbers, indent=1)
    return f"{text}\n".encode()


def _refuse_orphans(state: SetState) -> None:
    """Raise InputError if the folder holds shards that belong to none of its sets:
    they would be left out.
    """
    if state.orphans:
        count = number_of(len(state.orphans), "shard belongs", "shards belong")
        orphans = listed(state.orphans, 3)
        raise InputError(
            f"{state.layout.output_dir}: {count} to none of its sets: {orphans}",
            f"expected a manifest that lists them in {state.layout.output_dir / STATE_NAME}",
            "restore that manifest, or move these shards to another folder",
        )
