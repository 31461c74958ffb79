"""Inventory: the shards that exist and those that should.
Checked: the totals of all shard reports.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.absent_shards import no_shards, verify_command
from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.errors import InputError
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.layout import parse_shard_name, shard_name, split_of

_MOST_MISSING = 99_999
"""Missing shards with a finding of their own each, if only names tell the number of shards."""


class Inventory(Struct, frozen=True):
    """The existing files (sizes in bytes by name) and the expected shards, by split, in order.

    ``images`` is the number of images that each split of the data set ``dataset`` should have.
    ``state`` is what the folder holds. Without a manifest that covers the plan, the expected shards
    are the planned ones.
    """

    dataset: str
    images: Mapping[str, int]
    sizes: Mapping[str, int]
    shards: Mapping[str, Sequence[str]]
    manifest: Manifest | None
    infos: Mapping[str, ShardInfo]
    state: SetState

    @property
    def is_unfinished(self) -> bool:
        """Whether the conversion has not finished, and the expected shards are the planned ones."""
        return self.manifest is None and self.state.plan is not None

    @property
    def expected(self) -> tuple[str, ...]:
        """The shards that should exist."""
        return tuple(itertools.chain.from_iterable(self.shards.values()))

    @property
    def present(self) -> tuple[str, ...]:
        """The expected shards that exist."""
        return tuple(name for name in self.expected if name in self.sizes)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the data set."""
        return tuple(self.images)

    def of(self, split: str) -> Sequence[str]:
        """The expected shards of one split."""
        return self.shards.get(split, ())


# existing and expected shards ---------------------------------------------------------------------


def take_inventory(state: SetState, dataset: CheckedDataset) -> Inventory:
    """Existing and expected shards: from the sound manifest, then from the plan, otherwise from the
    files' names.

    A manifest that is older than the plan does not count: the set is growing, or it is being
    replaced.

    Raises:
        InputError: no manifest lists the expected shards, and no shards exist.
    """
    manifest = state.manifest
    sizes = _list_files(state.records, dataset.splits)
    inventory = Inventory(
        dataset=dataset.name,
        images=dataset.images,
        sizes=sizes,
        shards={},
        manifest=None,
        infos=state.infos,
        state=state,
    )
    if manifest is not None and state.covers_plan:
        shards = _recorded_shards(dataset.splits, manifest)
        return replace(inventory, shards=shards, manifest=manifest, infos=manifest.shards)
    if not any(map(parse_shard_name, sizes)):
        raise no_shards(state.records, dataset, verify_command)
    if state.plan is not None:
        planned_images = {split: totals.images for split, totals in state.plan.totals.items()}
        planned_splits = dict.fromkeys((*dataset.splits, *state.plan.totals))
        planned_shards = {split: state.plan.names(split) for split in planned_splits}
        images = {**dataset.images, **planned_images}
        return replace(inventory, images=images, shards=planned_shards)
    existing_shards = {split: list(_set_of(split, sizes)) for split in dataset.splits}
    existing_infos = {name: info for name, info in state.infos.items() if name in sizes}
    return replace(inventory, shards=existing_shards, infos=existing_infos)


def _recorded_shards(splits: Iterable[str], manifest: Manifest) -> dict[str, list[str]]:
    """The names of the shards that a manifest counts, by split."""
    shards = {}
    for split in splits:
        if split in manifest.totals:
            count = manifest.totals[split].shards
            shards[split] = [shard_name(split, number, count) for number in range(count)]
    return shards


def _list_files(records: SetRecords, splits: Collection[str]) -> dict[str, int]:
    """Every file that a glob over train-* and validation-* matches,
    except shards of other sets, with its size.
    """
    layout = records.layout
    if not layout.output_dir.is_dir():
        return {}
    prefixes = tuple(f"{split}-" for split in splits)
    foreign_splits = records.foreign_splits.keys() - {*splits}
    sizes: dict[str, int] = {}
    with scan(layout.output_dir) as entries:
        for entry in entries:
            is_dangling = entry.is_symlink() and not Path(entry.path).exists()
            is_foreign = split_of(entry.name) in foreign_splits
            if entry.name.startswith(prefixes) and not is_dangling and not is_foreign:
                sizes[entry.name] = entry.stat().st_size
    return dict(sorted(sizes.items()))


def _set_of(split: str, names: Iterable[str]) -> Iterator[str]:
    """The shards of the set that most of ``names`` belong to.

    Raises:
        InputError: most of that set is missing.
    """
    existing: Counter[int] = Counter()
    examples: dict[int, str] = {}
    for name in names:
        parsed = parse_shard_name(name)
        if parsed is None or parsed[0] != split:
            continue
        _, number, count = parsed
        if number < count:
            existing[count] += 1
        if name.endswith(f"-of-{count:05d}"):
            examples.setdefault(count, name)
    if not existing:
        return
    count = max(existing, key=lambda total: (existing[total], total))
    if count - existing[count] > _MOST_MISSING:
        raise InputError(
            f"only {existing[count]:,} of {count:,} {split} shards exist",
            f"the name {examples[count]} states {count:,} shards",
            "name the folder that holds them all, or move these files away if they are no shards",
        )
    for number in range(count):
        yield shard_name(split, number, count)
