"""Checks and steps of ``--consume``: raw data gives its space to the shards, if that is allowed, fits and can resume.

``sources/consumption.py`` frees the space itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
from array import array
from collections.abc import Collection, Sequence

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import Plan, PlannedSplit, plan_name
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.model import Progress
from imagenet_prep.shards.room import consumed_needs
from imagenet_prep.shards.run import Work
from imagenet_prep.sources.consumption import Consumption, Gone, consumed_file, gone, is_consumable
from imagenet_prep.sources.slices import Container
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.storage.durable import can_punch
from imagenet_prep.storage.files import Need
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.refusals import writing


def is_gone(split: PlannedSplit) -> bool:
    """Whether the raw data of a split exists only on record: it was consumed, or is being consumed."""
    return any(isinstance(each, Gone) for each in split.catalog.containers)


# whether it is allowed -----------------------------------------------------------------------------------------


def check_consumable(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Refuse to consume raw data that can't be fetched again, or whose space can't be freed; nothing is written.

    Raises:
        UsageError: it is outside DATA_DIR/raw-data, or holds several splits, or its file system can't free the space.
        InputError: none of its digests is known.
    """
    layout.refuse_urls()
    if layout.output_dir.resolve() != layout.data_dir.resolve():
        raise UsageError(
            f"raw data of {layout.data_dir} can't give its space to shards in {layout.output_dir}",
            "expected --consume without --output",
            "leave out one of the two",
        )
    whole = [each for split in splits if not is_gone(split) for each in split.catalog.containers]
    for path in {each.path for each in whole}:
        if sum(each.path == path for each in whole) > 1:
            raise _refused(path, "it holds several splits, so none of it can be freed before the last one is made")
    for each in whole:
        _check_place(each, layout)
        if not seen_digests(layout, _below(layout.raw_dir, each.path), each.path):
            raise InputError(
                f"{each.path} can't be consumed: nothing proves that it can be fetched again",
                "expected a digest from a download, or from a check of the existing file",
                f"check it: {command('download', layout.data_dir)}    (with the site that it is from)",
            )
    for folder in {each.path.parent for each in whole}:
        with writing(folder):
            if not can_punch(local_path(folder)):
                raise UsageError(
                    f"the file system of {folder} can't free space within a file",
                    "expected one that punches holes (ext4, XFS, Btrfs, ZFS, tmpfs) for --consume",
                    "convert without --consume, on a disk with space for both",
                )


def _check_place(container: Container, layout: Layout) -> None:
    path, own = container.path, layout.own_raw_dir
    if not is_consumable(container):
        raise _refused(path, "it is a folder, or a kind of file whose space can't be freed")
    below = _below(own, path)
    real = layout.data_dir.resolve() / own.name / below
    if not below or path.is_symlink() or path.resolve() != real:
        raise _refused(path, f"it is outside {own}, which is read-only for --consume; or it is a link")
    status = path.stat()
    if status.st_nlink > 1:
        raise _refused(path, "it has another name elsewhere (a hard link), which would lose it too")
    if status.st_dev != layout.data_dir.stat().st_dev:
        raise _refused(path, f"it is on another file system than {layout.data_dir}, which can't use its space")


def _below(folder: AnyPath, path: AnyPath) -> str:
    """A path relative to a folder; "" for one that is not below it."""
    below, above = local_path(path), local_path(folder)
    return str(below.relative_to(above)) if below.is_relative_to(above) else ""


def _refused(path: AnyPath, why: str) -> UsageError:
    return UsageError(f"{path} can't be consumed", why, "convert without --consume")


# whether it can resume -----------------------------------------------------------------------------------------


def refuse_lost(before: Plan | None, splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Raise InputError for a split of the plan ``before`` that was being consumed, and that nothing remains of."""
    if before is None or ("consume", True) not in before.options:
        return
    for split in before.totals.keys() - {each.catalog.split for each in splits}:
        folder = layout.consumed(split).folder
        raise InputError(
            f"{folder} is gone, and no {split} images are in {layout.raw_dir}",
            f"expected it: their raw data was being consumed, so those that are in no {split} shard are only there",
            f"put the folder back, or get the raw data again: {command('download', layout.data_dir)}",
        )


def refuse_gone(
    splits: Sequence[PlannedSplit], waiting: Collection[str], layout: Layout, options: MakingOptions
) -> None:
    """Refuse a conversion whose raw data is gone, before any existing file is removed for it.

    Args:
        splits: as planned.
        waiting: the names of the shards that are not done.
        layout: the paths of the set.
        options: whether to continue consuming.

    Raises:
        InputError: the images of a shard to make are neither in raw data nor in its bundle.
        UsageError: they are, but resuming requires ``consume``.
    """
    for split in splits:
        names = [name for plan in split.plans if (name := plan_name(plan)) in waiting]
        if not is_gone(split) or not names:
            continue
        found = Consumption.find(layout, split.catalog.split)
        if found is None or not _covers(found, split, names):
            raise gone(split.source)
        if not options.consume:
            raise UsageError(
                f"{split.source} is being consumed, and {len(names):,} of its shards are not made yet",
                "expected that conversion to resume",
                "run the same imagenet-prep convert with --consume",
            )


def _covers(found: Consumption, split: PlannedSplit, names: Sequence[str]) -> bool:
    """Whether the shards can be made from the remains of a consumption."""
    if not set(names) <= set(found.shards) or found.partition != _partition(split, found.shards):
        return False
    return not found.is_read or all((found.paths.bundles / name).exists() for name in names)


def _partition(split: PlannedSplit, names: Collection[str]) -> str:
    """A digest of the listing's rows in each of these shards."""
    digest = hashlib.sha256()
    for plan in split.plans:
        if plan_name(plan) in names:
            rows = array("I", split.order[plan.start : plan.stop])
            digest.update(plan_name(plan).encode() + rows.tobytes())
    return digest.hexdigest()


# the work ------------------------------------------------------------------------------------------------------


def consuming_needs(works: Sequence[Work], layout: Layout, workers: int) -> list[Need]:
    """The disk space needed to start consuming; resuming needs nothing beyond that."""
    return [
        need
        for work in works
        if not is_gone(work.split)
        for need in consumed_needs(
            layout,
            work.pending,
            under_way=workers * work.largest,
            whole=max(
                (each.path.stat().st_size for each in work.split.catalog.containers if not each.is_sliced), default=0
            ),
        )
    ]


def begin_consuming(works: Sequence[Work], layout: Layout, progress: Progress) -> list[Work]:
    """The works, each with its consumption on record and its files claimed, old or new.

    Raises:
        InputError: a file is gone or has changed.
    """
    layout.shards.sync()  # finished shards must be durable: the space of their images is freed, too
    layout.indexes.sync()
    fresh = [work for work in works if not is_gone(work.split)]
    if fresh:
        progress.note(_announcement(fresh))
    begun = []
    for work in works:
        split = work.split
        found = Consumption.find(layout, split.catalog.split)
        if not is_gone(split):
            found = _consumption(work, layout)
            found.begin(split.catalog)
        if found is None or found.is_over:
            begun.append(work)
            continue
        found.take_files()
        if not work.plans and not found.is_read:
            found.end_pass(len(split.catalog))
        if found.is_read:
            _remove_used(found, work)
        begun.append(dataclasses.replace(work, consumption=found))
    return begun


def finish_consuming(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Remove the rest of raw data and bundles, once all shards are made and on record."""
    for split in splits:
        found = Consumption.find(layout, split.catalog.split)
        if found is not None and found.is_read and not found.is_over:
            found.finish()


def _consumption(work: Work, layout: Layout) -> Consumption:
    split, names = work.split, tuple(map(plan_name, work.plans))
    files = (
        consumed_file(layout, each, seen_digests(layout, _below(layout.raw_dir, each.path), each.path))
        for each in split.catalog.containers
    )
    return Consumption(layout, split.catalog.split, tuple(files), names, _partition(split, names))


def _remove_used(found: Consumption, work: Work) -> None:
    """Remove the bundles of finished shards, which a crash left behind."""
    for name in set(found.shards) - set(map(plan_name, work.plans)):
        (found.paths.bundles / name).unlink(missing_ok=True)


def _announcement(works: Sequence[Work]) -> str:
    files = [each.path for work in works for each in work.split.catalog.containers]
    size = sum(path.stat().st_size for path in files)
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    what = f"{files[0].name}{more}, {size:,} bytes"
    return f"--consume: {what} give their space to the shards; then they are gone (imagenet-prep download fetches them)"
