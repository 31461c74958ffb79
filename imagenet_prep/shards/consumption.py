"""Consumption: raw data that gives its space to the shards while they are made (``--consume``), one
record per split.

The archive is read once, in its order. Its images are appended to one bundle per shard. Step by
step, the bundles are made durable, then the number of images in them is recorded, and only then is
the space of those images freed. Holes are punched into a tar; other files are removed once all of
their images are durable. The content of each file is recorded before the first hole, so after a
crash at any moment, the next run plans the same shards and resumes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict, replace

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.model import Progress
from imagenet_prep.shards.room import HELD, RECORD, PendingShards
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.parquets import ParquetImages
from imagenet_prep.sources.saved_catalog import PackedCatalog, load_catalog
from imagenet_prep.sources.slices import Container, Gone, gone
from imagenet_prep.sources.tars import Archive
from imagenet_prep.state.journal import is_as_written, sealed_line
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.durable import can_punch, fsync_dir, make_folder, punch, sync_file_system
from imagenet_prep.storage.files import find_plain, save_bytes
from imagenet_prep.storage.layout import ConsumedPaths, Layout
from imagenet_prep.storage.location import local_or_none, local_path
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.shards.run import Work

_KINDS: Mapping[str, type[Archive | ParquetImages]] = {
    each.__name__: each for each in (Archive, ParquetImages)
}
_LEAST_STEP = 16 << 20  # bytes; each step of a pass makes every bundle durable


class ConsumedFile(Struct, frozen=True):
    """A file: its path below DATA_DIR, kind, size, time, and its verified digests."""

    path: str
    kind: str
    size: int
    mtime_ns: int
    digests: Mapping[str, str]

    def is_at(self, path: Path) -> bool:
        """Whether the file is at ``path`` as it was recorded: a hole changes its time."""
        status = path.stat() if path.exists() else None
        return status is not None and (status.st_size, status.st_mtime_ns) == (
            self.size,
            self.mtime_ns,
        )


class ConsumptionRecord(Struct, kw_only=True):
    """The raw data of one split that is being consumed, or was: the content of record.json.

    Args:
        split: ``train``.
        files: the consumed files, in the order of the pass.
        listing: the name of the saved content of the files, a digest of it.
        shards: the shards with bundles: their fingerprints by name.
        total: the number of images of these shards.
        rows: how many of them, from the first of the pass, are durable in bundles; -1 while files
        are moved. is_over: whether all images are in shards.
    """

    split: str
    files: tuple[ConsumedFile, ...]
    listing: str
    shards: Mapping[str, str]
    total: int
    rows: int = -1
    is_over: bool = False


class Consumption(ConsumptionRecord, kw_only=True):
    """A record at its place: ``layout`` holds the paths."""

    layout: Layout

    @classmethod
    def find(cls, layout: Layout, split: str) -> Consumption | None:
        """Load the record of a split; None if its raw data was never consumed.

        Raises:
            InputError: the record is lost, or has changed since it was written: it might free the
                only copy of images.
        """
        if local_or_none(layout.data_dir) is None:
            return None  # only files on a disk can free their space
        paths = layout.consumed(split)
        content = find_plain(paths.record)
        if content is None and not paths.files.exists() and not paths.bundles.exists():
            return None
        if not is_as_written(content or b""):
            raise _changed(paths.record)
        try:
            record = convert(json.loads(content or b""), ConsumptionRecord)
        except ValueError as error:
            raise _changed(paths.record) from error
        if record.split != split:  # the record of another split
            raise _changed(paths.record)
        return cls(layout=layout, **asdict(record))

    @classmethod
    def begin(cls, work: Work, layout: Layout) -> Consumption:
        """Record the files of a split, and what they hold; an earlier record is removed first."""
        catalog, data_dir, files = work.split.catalog, local_path(layout.data_dir), []
        for each in catalog.containers:
            path = local_path(each.path)
            status, name = path.stat(), str(path.relative_to(data_dir))
            digests = _digests(layout, path)
            files.append(
                ConsumedFile(name, type(each).__name__, status.st_size, status.st_mtime_ns, digests)
            )
        fingerprints = {plan_name(plan): plan.fingerprint for plan in work.plans}
        packed = PackedCatalog.pack(catalog)
        found = cls(
            layout=layout,
            split=catalog.split,
            files=tuple(files),
            listing=packed.name,
            shards=fingerprints,
            total=work.pending.images,
        )
        with writing(found.paths.folder):
            if found.paths.folder.exists():
                found.paths.record.unlink(missing_ok=True)
                fsync_dir(found.paths.folder)
                shutil.rmtree(found.paths.folder)
        packed.save(found.paths.listing)
        found._save()
        return found

    def _save(self) -> None:
        value = {name: getattr(self, name) for name in ConsumptionRecord.__struct_fields__}
        save_bytes(self.paths.record, sealed_line(to_builtins(value)))

    @property
    def paths(self) -> ConsumedPaths:
        """The paths of the record and the bundles."""
        return self.layout.consumed(self.split)

    @property
    def is_read(self) -> bool:
        """Whether the pass is finished: all images are in bundles or shards."""
        return self.rows == self.total

    @property
    def _moved(self) -> list[Path]:
        """The current places of the files; a copy has them in one folder, so their names differ."""
        return [self.paths.files / Path(each.path).name for each in self.files]

    def catalog(self) -> Catalog:
        """The recorded content of the files."""
        try:
            found = load_catalog(self.paths.listing, self.listing)
        except InputError as error:
            raise _changed(self.paths.listing) from error
        found.containers = [Gone(self.layout.data_dir / each.path) for each in self.files]
        return found

    def containers(self) -> list[Container]:
        """The containers that read the files at their current place."""
        return [_KINDS[each.kind](path) for each, path in zip(self.files, self._moved, strict=True)]

    # the pass -------------------------------------------------------------------------------------

    def take_files(self) -> None:
        """Move the files to a place that no other stage reads, before the pass starts.

        Raises:
            InputError: a file does not exist, or was written to.
        """
        make_folder(self.paths.files)
        make_folder(self.paths.bundles)
        if self.rows >= 0:  # all were moved, and some may be removed since
            return
        for each, moved in zip(self.files, self._moved, strict=True):
            path = local_path(self.layout.data_dir) / each.path
            if moved.exists():
                if not each.is_at(moved):  # the pass started after this record
                    raise _changed(self.paths.record)
                if each.is_at(path):  # a power cut may leave both names of what was moved
                    path.unlink()
                continue
            if not each.is_at(path):
                raise InputError(
                    f"{path} is gone, or was written to since it was to be consumed",
                    "expected the file whose images were listed",
                    f"move {self.paths.folder} away and run the same command again",
                )
            with writing(moved):
                path.replace(moved)
                fsync_dir(self.paths.files)
                fsync_dir(path.parent)
        self.rows = 0
        self._save()

    def keep(self, done: int, written: Sequence[Path], following: tuple[int, int] | None) -> None:
        """Make the bundles ``written`` durable, record that the first ``done`` images are, then
        free their space.

        ``following`` is container and offset of the next image: nothing before it is read again.
        None: no image is read again.
        """
        if written:
            with writing(self.paths.bundles):
                sync_file_system(
                    self.paths.bundles
                )  # all at once; fsync then reports errors per file
            for path in written:
                with writing(path), path.open("rb") as file:
                    os.fsync(file.fileno())
            with writing(self.paths.bundles):
                fsync_dir(self.paths.bundles)
        if (
            not self.is_read and self.rows != done
        ):  # after the pass, a request may cover fewer shards
            self.rows = done
            self._save()
        current, offset = following or (len(self.files), 0)
        for number, path in enumerate(self._moved[: current + 1]):
            with writing(path):
                if number < current:
                    path.unlink(missing_ok=True)
                elif _KINDS[self.files[number].kind].is_sliced and offset:
                    punch(path, 0, offset)

    def finish(self) -> None:
        """Remove the rest of the files and the bundles,
        then record that all images are in shards.
        """
        for folder in (self.paths.files, self.paths.bundles):
            shutil.rmtree(folder, ignore_errors=True)
        self.is_over = True
        self._save()  # this syncs their folder too


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path} has changed since it was written, or is gone",
        "expected the record of raw data that was consumed",
        f"put it back; or move {path.parent} away and get the raw data again with imagenet-prep "
        "download: "
        "finished shards are kept",
    )


def _digests(layout: Layout, path: Path) -> dict[str, str]:
    return seen_digests(layout, str(path.relative_to(local_path(layout.own_raw_dir))), path)


def is_gone(split: PlannedSplit) -> bool:
    """Whether the raw data of a split exists only on record:
    it was consumed, or is being consumed.
    """
    return any(isinstance(each, Gone) for each in split.catalog.containers)


# whether it is allowed, and can resume ------------------------------------------------------------


def refuse_another_output(layout: Layout) -> None:
    """Raise UsageError if shards belong in another folder than the raw data."""
    if layout.output_dir.resolve() != layout.data_dir.resolve():
        raise UsageError(
            f"raw data of {layout.data_dir} can't give its space to shards in {layout.output_dir}",
            "expected --consume without --output",
            "leave out one of the two",
        )


def check_consumable(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Refuse to consume raw data that can't be fetched again, or whose space can't be freed;
    nothing is written.

    Raises:
        UsageError: it is outside DATA_DIR/raw-data, or holds several splits, or its file system
        can't free the space. InputError: none of its digests is known.
    """
    layout.refuse_urls()
    refuse_another_output(layout)
    containers = [
        each for split in splits if not is_gone(split) for each in split.catalog.containers
    ]
    splits_in = Counter(each.path for each in containers)
    for each in containers:
        path = local_path(each.path)
        several = "it holds several splits, so none of it can be freed before the last one is made"
        if obstacle := several if splits_in[path] > 1 else _obstacle(each, path, layout):
            raise UsageError(f"{path} can't be consumed", obstacle, "convert without --consume")
        if not _digests(layout, path):
            raise InputError(
                f"{path} can't be consumed: nothing proves that it can be fetched again",
                "expected a digest from a download, or from a check of the existing file",
                (
                    f"check it: {command('download', layout.data_dir)}    (with the site that "
                    "it is "
                    "from)"
                ),
            )
    for folder in {local_path(each.path).parent for each in containers}:
        with writing(folder):
            if not can_punch(folder):
                raise UsageError(
                    f"the file system of {folder} can't free space within a file",
                    "expected one that punches holes (ext4, XFS, Btrfs, ZFS, tmpfs) for --consume",
                    "convert without --consume, on a disk with space for both",
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


def _obstacle(container: Container, path: Path, layout: Layout) -> str:
    """The reason that forbids to consume a file; "" if there is none."""
    own, data_dir = local_path(layout.own_raw_dir), local_path(layout.data_dir)
    if type(container).__name__ not in _KINDS:
        return "it is a folder, or a kind of file whose space can't be freed"
    if not path.is_relative_to(own) or path.resolve() != data_dir.resolve() / path.relative_to(
        data_dir
    ):
        return f"it is outside {own}, which is read-only for --consume; or it is a link"
    if path.stat().st_nlink > 1:
        return "it has another name elsewhere (a hard link), which would lose it too"
    if path.stat().st_dev != data_dir.stat().st_dev:
        return f"it is on another file system than {data_dir}, which can't use its space"
    return ""


def refuse_lost(before: Plan | None, splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Raise InputError for a split of the plan ``before`` that was being consumed,
    and that nothing remains of.
    """
    if before is None or ("consume", True) not in before.options:
        return
    for split in before.totals.keys() - {each.catalog.split for each in splits}:
        raise InputError(
            (
                f"{layout.consumed(split).record} is gone, and no {split} images are in "
                f"{layout.raw_dir}"
            ),
            (
                "expected it: their raw data was consumed, and images that are in no shard yet "
                "were "
                "only next to it"
            ),
            (
                "put its folder back, or get the raw data again: "
                f"{command('download', layout.data_dir)}"
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
        plans = {name: plan for plan in split.plans if (name := plan_name(plan)) in waiting}
        if not is_gone(split) or not plans:
            continue
        found = Consumption.find(layout, split.catalog.split)
        with_images = [
            name for name, plan in plans.items() if plan.start < plan.stop
        ]  # the others have no bundle
        if (
            found is None
            or (
                found.is_read
                and not all((found.paths.bundles / name).exists() for name in with_images)
            )
            or any(found.shards.get(name) != plan.fingerprint for name, plan in plans.items())
        ):
            raise gone(split.source)
        if not consume:
            raise UsageError(
                (
                    f"{split.source} is being consumed, and {len(plans):,} of its shards are not "
                    "made yet"
                ),
                "expected that conversion to resume",
                "run the same imagenet-prep convert with --consume",
            )


# the work -----------------------------------------------------------------------------------------


def consumed_needs(
    layout: Layout, pending: PendingShards, *, under_way: int, whole: int
) -> list[Need]:
    """The space for pending shards in addition to the raw data that gives its space to them.

    It includes the framing of records. Raw data and bundles, or bundles and shards, exist twice for
    a while: a step of the pass, or the bytes held until the next sync with the shards
    ``under_way``. It also includes ``whole``, the largest file that can only be freed as a whole.
    """
    if not pending.shards:
        return []
    size = pending.size
    twice = max(min(size, consumed_step(size)), min(size, HELD + under_way))
    what = f"{number_of(pending.shards, f'{pending.split} shard')} in the space of the raw data"
    needed = RECORD * pending.images + twice + whole
    return [Need("convert", what, layout.output_dir, needed, 4 * pending.shards, pending.is_about)]


def consumed_step(size: int) -> int:
    """Bytes after which a pass through ``size`` bytes frees their space:
    a small part of it, but not too often.
    """
    return max(size // 32, _LEAST_STEP)


def consuming_needs(works: Sequence[Work], layout: Layout, workers: int) -> list[Need]:
    """The disk space needed to start consuming; resuming needs nothing beyond that."""
    needs = []
    for work in works:
        if not is_gone(work.split):
            wholes = (
                each.path.stat().st_size
                for each in work.split.catalog.containers
                if not each.is_sliced
            )
            whole = max(wholes, default=0)
            needs += consumed_needs(
                layout, work.pending, under_way=workers * work.largest, whole=whole
            )
    return needs


def begin_consuming(works: Sequence[Work], layout: Layout, progress: Progress) -> list[Work]:
    """The works, each with its consumption on record and its files claimed, old or new.

    Raises:
        InputError: a file is gone or has changed.
    """
    layout.shards.sync()  # finished shards must be durable: the space of their images is freed, too
    layout.indexes.sync()
    fresh = [
        each.path
        for work in works
        if not is_gone(work.split)
        for each in work.split.catalog.containers
    ]
    if fresh:
        more = f" and {len(fresh) - 1:,} more" if len(fresh) > 1 else ""
        what = f"{fresh[0].name}{more}, {sum(path.stat().st_size for path in fresh):,} bytes"
        then = (
            "give their space to the shards; then they are gone (imagenet-prep download fetches "
            "them)"
        )
        progress.note(f"--consume: {what} {then}")
    return [_claim(work, layout) for work in works]


def _claim(work: Work, layout: Layout) -> Work:
    is_new = not is_gone(work.split)
    found = (
        Consumption.begin(work, layout)
        if is_new
        else Consumption.find(layout, work.split.catalog.split)
    )
    if found is None or found.is_over:
        return work
    found.take_files()
    if not work.plans and not found.is_read:  # existing shards hold all images
        found.keep(found.total, (), None)
    if found.is_read:
        for name in found.shards.keys() - set(
            map(plan_name, work.plans)
        ):  # a crash left their bundles behind
            (found.paths.bundles / name).unlink(missing_ok=True)
    return replace(work, consumption=found)


def finish_consuming(splits: Sequence[PlannedSplit], layout: Layout) -> None:
    """Remove the rest of raw data and bundles, once all shards are made and on record."""
    for split in splits:
        found = Consumption.find(layout, split.catalog.split)
        if found is not None and found.is_read and not found.is_over:
            found.finish()
