"""UnprovenShards: files under planned names that this set did not make, whatever its records say.

Plan, manifest, journal and index may be with the shards of another set. So a shard is replaced
unasked only if its own first record, or its index, shows that it is of this set.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.images import jpeg
from imagenet_prep.model import ShardInfo, ShardPlan
from imagenet_prep.reading.shard import Shard
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.indexes import agrees, read_index
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout, grown_from, split_of
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.framing import OVERHEAD, Framed, FramingError, Index

_ROWS = 20
"""The images of a shard that may be its first record: damaged images before it are left out."""


class UnprovenShards(Struct, frozen=True):
    """The look at the files that a conversion is about to replace; nothing is written.

    Args:
        records: of the set.
        plan_on_disk: the plan of the folder before this conversion.
        journal: of the set, without the shards that are replaced on purpose.
        reads_images: whether the raw data can be read at any place now.
    """

    records: SetRecords
    plan_on_disk: Plan | None
    journal: Journal
    reads_images: bool
    reader: Reader = field(default_factory=Reader)

    @property
    def _layout(self) -> Layout:
        return self.records.layout

    def refuse(
        self, splits: Sequence[PlannedSplit], todo: Iterable[ShardPlan], *, is_rank: bool
    ) -> None:
        """Raise UsageError if a shard to make would replace a shard of another set."""
        todo = list(todo)
        present = self._layout.find_shards({plan.split for plan in todo}) if todo else {}
        split_by_name = {split.catalog.split: split for split in splits}
        unproven: list[str] = []
        for plan in todo:
            name = plan_name(plan)
            if present.get(name) and not self._is_own(plan, split_by_name[plan.split]):
                unproven.append(name)
        if unproven:
            raise self._refusal(unproven, is_rank=is_rank)

    def _refusal(self, unproven: Sequence[str], *, is_rank: bool) -> UsageError:
        layout = self._layout
        shards = f"the shard {unproven[0]}, whose records are"
        if len(unproven) > 1:
            count = number_of(len(unproven), "shard")
            shards = f"{count} (first: {unproven[0]}), whose records are"
        advice = "move them away, or choose another folder with --output"
        grows = any(grown_from(split_of(name))[1] > 1 for name in unproven)
        if not (grows or is_rank or layout.rank_parts()):  # --overwrite grows nothing
            advice = f"{advice}; or, if nobody needs them, replace them with --overwrite"
        return UsageError(
            f"{layout.output_dir} holds {shards} not those of this set",
            f"expected only shards of this set under these names, as listed in {layout.state_dir}",
            advice,
        )

    # one shard ------------------------------------------------------------------------------------

    def _is_own(self, plan: ShardPlan, split: PlannedSplit) -> bool:
        """Whether a shard was made for this set, or is a damaged one that its records list."""
        name = plan_name(plan)
        info = self._recorded(plan)
        first = _first_record(self._layout, name)
        if first is None:
            return info is not None
        if info is not None and self._is_recorded_content(info, first):
            return True
        if self.reads_images and not split.catalog.is_in_order:
            with contextlib.suppress(PrepError, OSError):  # the maker reports it
                return bytes(first.data) in self._records(plan, split)
        is_planned = self.plan_on_disk is not None and (
            self.plan_on_disk.fingerprints_by_name().get(name) == plan.fingerprint
        )
        return is_planned and self._is_indexed_as_planned(plan, split, first)

    def _recorded(self, plan: ShardPlan) -> ShardInfo | None:
        """The entry of a shard as it is planned now, in the journal or in the manifest."""
        name = plan_name(plan)
        manifest = self.records.usable_manifest
        entries = (self.journal.get(name), manifest.shards.get(name) if manifest else None)
        for info in entries:
            if info is not None and info.fingerprint == plan.fingerprint:
                return info
        return None

    def _is_recorded_content(self, info: ShardInfo, first: Framed) -> bool:
        """Whether a shard holds, or starts with, the records that its entry lists."""
        if agrees(self._layout, info):
            index = read_index(self._layout, info.name, info.records)
            return index is not None and list(index.crcs[:1]) == [first.crc]
        return _digest(self._layout, info.name) == info.digest

    def _records(self, plan: ShardPlan, split: PlannedSplit) -> Iterator[bytes]:
        """The records with which a shard of these images may start."""
        catalog = split.catalog
        for row in itertools.islice(split.rows(plan), _ROWS):
            with contextlib.suppress(jpeg.ImageError):
                recorded = split.recorder.record(catalog.item(row), catalog.read(row, self.reader))
                yield b"".join(recorded.parts)

    def _is_indexed_as_planned(self, plan: ShardPlan, split: PlannedSplit, first: Framed) -> bool:
        """Whether the index lists only images of the plan, the first with the record that is there;
        or is missing, as after a crash.
        """
        index = read_index(self._layout, plan_name(plan), plan.stop - plan.start)
        if index is None:
            return True
        names = {split.catalog.names[row] for row in split.rows(plan)}
        return names.issuperset(index.names) and list(index.crcs[:1]) == [first.crc]


def _first_record(layout: Layout, name: str) -> Framed | None:
    """The first record of a file; None if it is damaged or can't be read."""
    with contextlib.suppress(FramingError, InputError):
        first = next(iter(Shard.open(layout.shard_path(name)).framed()), None)
        if first is not None and first.intact:
            return first
    return None


def _digest(layout: Layout, name: str) -> str:
    """The digest of the records of a shard; "" if one is damaged."""
    index = Index()
    with contextlib.suppress(FramingError, InputError):
        for framed in Shard.open(layout.shard_path(name)).framed():
            if not framed.intact:
                return ""
            index.add(len(framed.data) + OVERHEAD, framed.crc, "")
        return index.digest
    return ""
