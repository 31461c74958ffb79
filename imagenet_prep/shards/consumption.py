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
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict

from imagenet_prep.datasets.planned_set import plan_name
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import ShardPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.saved_catalog import DamagedError, PackedCatalog, load_catalog
from imagenet_prep.sources.slices import Container, Gone, container_class
from imagenet_prep.state.journal import is_as_written, sealed_line
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.storage.durable import fsync_dir, make_folder, punch, sync_file_system
from imagenet_prep.storage.files import find_plain, save_bytes
from imagenet_prep.storage.layout import ConsumedPaths, Layout
from imagenet_prep.storage.location import local_or_none, local_path
from imagenet_prep.storage.refusals import writing

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
        if not path.exists():
            return False
        status = path.stat()
        return status.st_size == self.size and status.st_mtime_ns == self.mtime_ns


class ConsumptionRecord(Struct, kw_only=True):
    """The raw data of one split that is being consumed, or was: the content of record.json.

    Args:
        split: ``train``.
        files: the consumed files, in the order of the pass.
        listing: the name of the saved content of the files, a digest of it.
        shards: the shards with bundles: their fingerprints by name.
        total: the number of images of these shards.
        rows: how many of them, from the first of the pass, are durable in bundles; -1 while files
            are moved.
        is_over: whether all images are in shards.
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
    def begin(cls, catalog: Catalog, plans: Sequence[ShardPlan], layout: Layout) -> Consumption:
        """Record the files of a split, and what they hold; an earlier record is removed first.

        ``plans`` are the shards that need their images.
        """
        files: list[ConsumedFile] = []
        for container in catalog.containers:
            path = local_path(container.path)
            status = path.stat()
            files.append(
                ConsumedFile(
                    path=str(path.relative_to(local_path(layout.data_dir))),
                    kind=type(container).__name__,
                    size=status.st_size,
                    mtime_ns=status.st_mtime_ns,
                    digests=known_digests(layout, path),
                )
            )
        packed = PackedCatalog.pack(catalog)
        consumption = cls(
            layout=layout,
            split=catalog.split,
            files=tuple(files),
            listing=packed.name,
            shards={plan_name(plan): plan.fingerprint for plan in plans},
            total=sum(plan.stop - plan.start for plan in plans),
        )
        paths = consumption.paths
        with writing(paths.folder):
            if paths.folder.exists():
                paths.record.unlink(missing_ok=True)
                fsync_dir(paths.folder)
                shutil.rmtree(paths.folder)
        packed.save(paths.listing)
        consumption._save()
        return consumption

    def _save(self) -> None:
        record = {name: getattr(self, name) for name in ConsumptionRecord.__struct_fields__}
        save_bytes(self.paths.record, sealed_line(to_builtins(record)))

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
        return [self.paths.files / Path(file.path).name for file in self.files]

    def catalog(self) -> Catalog:
        """The recorded content of the files."""
        try:
            catalog = load_catalog(self.paths.listing, self.listing)
        except DamagedError as error:
            raise _changed(self.paths.listing) from error
        catalog.containers = [Gone(self.layout.data_dir / file.path) for file in self.files]
        return catalog

    def containers(self) -> list[Container]:
        """The containers that read the files at their current place."""
        places = zip(self.files, self._moved, strict=True)
        return [container_class(file.kind)(path) for file, path in places]

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
        for file, moved in zip(self.files, self._moved, strict=True):
            path = local_path(self.layout.data_dir) / file.path
            if moved.exists():
                if not file.is_at(moved):  # the pass started after this record
                    raise _other(moved, self.paths.record)
                if file.is_at(path):  # a power cut may leave both names of what was moved
                    path.unlink()
                continue
            if not file.is_at(path):
                raise self._lost(path)
            with writing(moved):
                path.replace(moved)
                fsync_dir(self.paths.files)
                fsync_dir(path.parent)
        self.rows = 0
        self._save()

    def _lost(self, path: Path) -> InputError:
        """The error for a file that is not as it was listed, before any of its space was freed."""
        steps = f"move {self.paths.folder} away and run the same command again"
        if any(moved.exists() for moved in self._moved):  # the only copy of these files
            steps = f"move the files in {self.paths.files} back to {path.parent}, then {steps}"
        return InputError(
            f"{path} is gone, or its size or time has changed since it was listed",
            "expected the file whose images were listed",
            steps,
        )

    def keep(self, done: int, written: Sequence[Path], following: tuple[int, int] | None) -> None:
        """Make the bundles ``written`` durable, record that the first ``done`` images are, then
        free their space.

        ``following`` is container and offset of the next image: nothing before it is read again.
        None: no image is read again.
        """
        if written:
            with writing(self.paths.bundles):
                # All at once; fsync then reports errors per file.
                sync_file_system(self.paths.bundles)
            for path in written:
                with writing(path), path.open("rb") as file:
                    os.fsync(file.fileno())
            with writing(self.paths.bundles):
                fsync_dir(self.paths.bundles)
        # After the pass, a request may cover fewer shards.
        if not self.is_read and self.rows != done:
            self.rows = done
            self._save()
        current, offset = following or (len(self.files), 0)
        for number, path in enumerate(self._moved[: current + 1]):
            with writing(path):
                if number < current:
                    path.unlink(missing_ok=True)
                elif container_class(self.files[number].kind).is_sliced and offset:
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
        f"{path} is gone, or not as --consume wrote it",
        "expected this file as it was: it says which raw data was consumed",
        Hint("put it back; or ", _start_again(path.parent)),
    )


def _other(file: Path, record: Path) -> InputError:
    """The error for a file whose size or time is not the recorded one, before its pass."""
    return InputError(
        f"{file} has another size or time than {record} says",
        "expected the recorded size and time: some of the file may be gone already",
        Hint(f"put the file or {record.name} back as it was; or ", _start_again(record.parent)),
    )


def _start_again(folder: Path) -> Hint:
    return Hint(
        f"move {folder} away, get the raw data again with ",
        mention("download"),
        ", and run the same command again: finished shards are kept",
    )


def known_digests(layout: Layout, path: Path) -> dict[str, str]:
    """The digests of a file that a download or a check has seen."""
    name = str(path.relative_to(local_path(layout.own_raw_dir)))
    return seen_digests(layout, name, path)


def consumed_step(size: int) -> int:
    """Bytes after which a pass through ``size`` bytes frees their space.

    It is a small part of them, but not too small.
    """
    return max(size // 32, _LEAST_STEP)
