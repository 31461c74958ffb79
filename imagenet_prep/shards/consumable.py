"""check_consumable: whether raw data may give its space to shards, and whether that can resume."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.model import ShardPlan
from imagenet_prep.shards.consumption import Consumption, known_digests
from imagenet_prep.sources.slices import Container, Gone, gone
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.durable import can_punch
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import writing
from imagenet_prep.text import number_of


def is_gone(split: PlannedSplit) -> bool:
    """Whether the raw data of a split exists only on record.

    It was consumed, or is being consumed.
    """
    return any(isinstance(container, Gone) for container in split.catalog.containers)


def refuse_another_output(layout: Layout) -> None:
    """Raise UsageError if shards belong in another folder than the raw data."""
    if layout.output_dir.resolve() != layout.data_dir.resolve():
        raise UsageError(
            f"--consume can't be combined with --output {layout.output_dir}",
            f"it deletes the raw data in {layout.data_dir} while the shards take its place there",
            "leave out --consume or --output",
        )


def check_consumable(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Refuse to consume raw data that can't be fetched again, or whose space can't be freed;
    nothing is written.

    Raises:
        UsageError: it is outside DATA_DIR/raw-data, or holds several splits, or its file system
            can't free the space.
        InputError: none of its digests is known.
    """
    layout.refuse_urls()
    refuse_another_output(layout)
    containers: list[Container] = []
    for split in splits:
        if not is_gone(split):
            containers += split.catalog.containers
    splits_of_path = Counter(container.path for container in containers)
    for container in containers:
        _refuse_obstacle(container, layout, splits=splits_of_path[container.path])
    for folder in {local_path(container.path).parent for container in containers}:
        _refuse_without_holes(folder)


def _refuse_obstacle(container: Container, layout: Layout, *, splits: int) -> None:
    """Refuse to consume a file that holds the images of so many splits; see check_consumable."""
    path = local_path(container.path)
    obstacle = _find_obstacle(container, path, layout)
    if splits > 1:
        obstacle = "it holds several splits, and --consume needs a file for each split"
    if obstacle:
        raise UsageError(f"{path} can't be consumed", obstacle, "leave out --consume")
    if not known_digests(layout, path):
        check = command("download", layout.data_dir)
        raise InputError(
            f"{path} can't be consumed: it was not compared with its source since its last change",
            "expected a file that can be downloaded again, since --consume removes it",
            Hint("compare it: ", check, "; if it is not from image-net.org, add its --source"),
        )


def _refuse_without_holes(folder: Path) -> None:
    """Raise UsageError if the file system of a folder can't punch holes."""
    with writing(folder):
        if not can_punch(folder):
            raise UsageError(
                f"--consume can't free space within a file in {folder}",
                "expected Linux, and a file system that punches holes: ext4, XFS, Btrfs, ZFS, "
                "tmpfs",
                "leave out --consume; the disk then needs space for both raw data and shards",
            )


def is_consumable(splits: Sequence[PlannedSplit], layout: Layout) -> bool:
    """Whether nothing but an unknown digest forbids to consume raw data."""
    try:
        check_consumable(splits, layout)
    except UsageError:
        return False
    except PrepError:
        return True
    return True


def _find_obstacle(container: Container, path: Path, layout: Layout) -> str:
    """The reason that forbids to consume a file; "" if there is none."""
    raw_dir, data_dir = local_path(layout.own_raw_dir), local_path(layout.data_dir)
    if not container.is_consumable:
        return "it is a folder, or a kind of file whose space can't be freed"
    if not path.is_relative_to(raw_dir):
        return f"it is outside {raw_dir}: --consume changes no other folder"
    target = path.resolve()
    if target != data_dir.resolve() / path.relative_to(data_dir):
        return f"it is a link, or below one: its file is {target}"
    if path.stat().st_nlink > 1:
        return "it has another name elsewhere (a hard link), which would lose it too"
    if path.stat().st_dev != data_dir.stat().st_dev:
        return f"it is on another file system than {data_dir}, which can't use its space"
    return ""


def refuse_lost(plan_on_disk: Plan | None, splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Raise InputError for a split of the plan ``plan_on_disk`` that was being consumed,
    and that nothing remains of.
    """
    if plan_on_disk is None or ("consume", True) not in plan_on_disk.options:
        return
    planned = {split.catalog.split for split in splits}
    for name in plan_on_disk.totals.keys() - planned:
        record = layout.consumed(name).record
        raise InputError(
            f"{record} is gone, and no {name} images are in {layout.raw_dir}",
            f"convert --consume moves images to {record.parent}; some may be in no shard yet",
            Hint(
                "put this folder back, or get the raw data again: ",
                command("download", layout.data_dir),
            ),
        )


def refuse_gone(
    splits: Sequence[PlannedSplit], waiting: Collection[str], layout: Layout, *, consume: bool
) -> None:
    """Refuse a conversion whose raw data is gone, before any existing file is removed for it.

    Args:
        splits: as planned.
        waiting: the names of the shards that are not done.
        layout: the paths of the set.
        consume: whether to continue consuming.

    Raises:
        InputError: the images of a shard to make are neither in raw data nor in its bundle.
        UsageError: they are, but resuming requires ``consume``.
    """
    for split in splits:
        if not is_gone(split):
            continue
        waiting_plans = [plan for plan in split.plans if plan_name(plan) in waiting]
        if not waiting_plans:
            continue
        consumption = Consumption.find(layout, split.catalog.split)
        if consumption is None or not _holds_images(consumption, waiting_plans):
            raise gone(split.source)
        if not consume:
            shards = number_of(len(waiting_plans), "of its shards is", "of its shards are")
            raise UsageError(
                f"--consume has started to use up {split.source}, and {shards} not made yet",
                "expected --consume again, which makes them from the images that are left",
                "run the same command with --consume",
            )


def _holds_images(consumption: Consumption, plans: Sequence[ShardPlan]) -> bool:
    """Whether the images of these shards are in the consumed files or in bundles."""
    for plan in plans:
        if consumption.shards.get(plan_name(plan)) != plan.fingerprint:
            return False
        needs_bundle = consumption.is_read and plan.start < plan.stop
        if needs_bundle and not (consumption.paths.bundles / plan_name(plan)).exists():
            return False
    return True
