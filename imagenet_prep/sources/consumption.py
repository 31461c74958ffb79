"""Consumption: the raw data of a split that gives its space to the shards while they are made.

The archive is read once, in its order. Its images are appended to one bundle per shard. Step by step, the bundles are
made durable, then the number of images in them is recorded, and only then is the space of those images freed. Holes
are punched into a tar; other files are removed once all of their images are durable. The content of each file is
recorded before the first hole, so after a crash at any moment, the next run plans the same shards and resumes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.parquets import ParquetImages
from imagenet_prep.sources.slices import Buffer, Container, Row
from imagenet_prep.sources.tars import Archive
from imagenet_prep.state.journal import seal
from imagenet_prep.storage.durable import fsync_dir, make_folder, punch, sync_file_system
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import ConsumedPaths, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path
from imagenet_prep.storage.refusals import writing


@dataclass(frozen=True, slots=True)
class Gone(Container):
    """A file that convert consumed; ``path`` is its former place."""

    def place(self, row: Row) -> str:
        """The former place of a row, for messages."""
        return f"{self.path.name}, which was consumed"

    def open(self) -> Callable[[Row], Buffer]:
        """Raise the error that says where the images are now."""
        raise gone(self.path)


def gone(path: AnyPath) -> InputError:
    """The error for a consumed file that is required again."""
    return InputError(
        f"{path} was consumed: its images are in the shards alone",
        "expected no more need for it: imagenet-prep convert --consume gave its space to the shards",
        "get it again with imagenet-prep download; then "
        "imagenet-prep repair makes wrong or missing shards, imagenet-prep convert another set",
    )


_KINDS: Mapping[str, type[Archive | ParquetImages]] = {each.__name__: each for each in (Archive, ParquetImages)}


@dataclass(frozen=True, slots=True)
class ConsumedFile:
    """A file: its path below DATA_DIR, kind, size, time, and its verified digests."""

    path: str
    kind: str
    size: int
    mtime_ns: int
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """The record of the raw data of one split that is being consumed, or was.

    Args:
        layout: the paths.
        split: ``train``.
        files: the consumed files, in the order of the pass.
        shards: the names of the shards with bundles.
        partition: a digest of the assignment of images to shards.
    """

    layout: Layout
    split: str
    files: tuple[ConsumedFile, ...]
    shards: tuple[str, ...]
    partition: str

    @property
    def paths(self) -> ConsumedPaths:
        """The paths of the record and the bundles."""
        return self.layout.consumed(self.split)

    # the record ------------------------------------------------------------------------------------------------

    @classmethod
    def find(cls, layout: Layout, split: str) -> Consumption | None:
        """Load the record of a split; None if its raw data was never consumed.

        Raises:
            InputError: the record is invalid, or has changed since it was written.
        """
        if local_or_none(layout.data_dir) is None:
            return None  # only files on a disk can free their space
        paths = layout.consumed(split)
        path = paths.record
        if not path.exists():
            if any(each.exists() for each in (paths.position, paths.files, paths.bundles)):
                raise _changed(path)  # without its content, images would be missing from the set
            return None
        value = _unsealed(path)
        try:
            files = tuple(ConsumedFile(**each) for each in value["files"])
            return cls(layout, split, files, tuple(value["shards"]), value["partition"])
        except (LookupError, TypeError) as error:
            raise _changed(path) from error

    def begin(self, catalog: Catalog) -> None:
        """Record the files to be consumed; an earlier record is first removed, all at once."""
        folder = self.paths.folder
        earlier = folder.with_name(f"{folder.name}.old")
        with writing(folder):
            shutil.rmtree(earlier, ignore_errors=True)
            if folder.exists():
                folder.rename(earlier)
                fsync_dir(folder.parent)
                shutil.rmtree(earlier, ignore_errors=True)
            make_folder(self.paths.listing)
        catalog.pack().save(self.paths.listing)
        value = {"files": [asdict(each) for each in self.files], "shards": self.shards, "partition": self.partition}
        _save_sealed(self.paths.record, value)

    def catalog(self) -> Catalog:
        """The recorded content of the files."""
        try:
            found = Catalog.load(self.paths.listing, check=True)
        except InputError as error:
            raise _changed(self.paths.listing) from error
        found.containers = [Gone(self.layout.data_dir / each.path) for each in self.files]
        return found

    def containers(self) -> list[Container]:
        """The containers that read the files at their current place."""
        return [_KINDS[each.kind](path) for each, path in zip(self.files, self._moved, strict=True)]

    @property
    def is_read(self) -> bool:
        """Whether the pass is finished: all images are in bundles or shards."""
        position = self.position
        return position is not None and position["rows"] == position["of"]

    @property
    def is_over(self) -> bool:
        """Whether all images are in shards."""
        position = self.position
        return position is not None and position["over"] is True

    def end_pass(self, rows: int) -> None:
        """Record that existing shards hold all ``rows`` images, so no pass is required."""
        _save_sealed(self.paths.position, {"rows": rows, "of": rows, "over": False})

    def finish(self) -> None:
        """Remove the rest of the files and the bundles, then record that all images are in shards."""
        position = self.position
        assert position is not None
        for folder in (self.paths.files, self.paths.bundles):
            shutil.rmtree(folder, ignore_errors=True)
        _save_sealed(self.paths.position, {**position, "over": True})  # this syncs their folder too

    @property
    def position(self) -> dict[str, Any] | None:
        """Progress of the pass: images in bundles, their total, whether all are in shards; None before the start."""
        return _unsealed(self.paths.position) if self.paths.position.exists() else None

    # the pass --------------------------------------------------------------------------------------------------

    def take_files(self) -> None:
        """Move the files to a place that no other stage reads, before the pass starts.

        Raises:
            InputError: a file does not exist, or was written to.
        """
        with writing(self.paths.folder):
            make_folder(self.paths.files)
            make_folder(self.paths.bundles)
        if self.position is not None:  # all were moved, and some may be removed since
            return
        for each, moved in zip(self.files, self._moved, strict=True):
            path = local_path(self.layout.data_dir) / each.path
            if moved.exists():
                if not _is_same(moved, each):  # the pass started, and only its position tells how far it came
                    raise _changed(self.paths.position)
                if _is_same(path, each):  # a power cut may leave both names of what was moved
                    path.unlink()
                continue
            if not path.exists():
                raise gone(path)
            if not _is_same(path, each):
                raise InputError(
                    f"{path} was written to since it was to be consumed",
                    "expected the file whose images were listed",
                    f"move {self.paths.folder} away and run the same command again",
                )
            with writing(moved):
                path.replace(moved)
                fsync_dir(self.paths.files)
                fsync_dir(path.parent)

    def done(self, total: int) -> int:
        """The number of images, from the first of the pass, that are durable in bundles; all after a finished pass."""
        position = self.position
        return 0 if position is None else total if self.is_read else position["rows"]

    def keep(self, done: int, total: int, written: Sequence[Path], following: tuple[int, int] | None) -> None:
        """Make the bundles ``written`` durable, record that the first ``done`` images are, then free their space.

        ``following`` is container and offset of the next image: nothing before it is read again. None: no image
        is read again.
        """
        paths = self.paths
        if written:
            with writing(paths.bundles):
                sync_file_system(paths.bundles)  # all at once; fsync then reports errors per file
            for path in written:
                with writing(path), path.open("rb") as file:
                    os.fsync(file.fileno())
            with writing(paths.bundles):
                fsync_dir(paths.bundles)
        if not self.is_read:  # after the pass, a request may cover fewer shards
            _save_sealed(paths.position, {"rows": done, "of": total, "over": False})
        self._give_back(following)

    @property
    def _moved(self) -> list[Path]:
        names = [Path(each.path).name for each in self.files]
        return [
            self.paths.files / (name if names.count(name) == 1 else f"{number:05d}-{name}")
            for number, name in enumerate(names)
        ]

    def _give_back(self, following: tuple[int, int] | None) -> None:
        """Free the space of everything before the image at ``following``, container and offset; None: of everything."""
        current, offset = following or (len(self.files), 0)
        for number, path in enumerate(self._moved[: current + 1]):
            with writing(path):
                if number < current:
                    path.unlink(missing_ok=True)
                elif _KINDS[self.files[number].kind].is_sliced and offset:
                    punch(path, 0, offset)


def consumed_file(layout: Layout, container: Container, digests: Mapping[str, str]) -> ConsumedFile:
    """The record of a file below DATA_DIR."""
    whole = local_path(container.path)
    status, path = whole.stat(), whole.relative_to(local_path(layout.data_dir))
    return ConsumedFile(str(path), type(container).__name__, status.st_size, status.st_mtime_ns, dict(digests))


def _is_same(path: Path, file: ConsumedFile) -> bool:
    """Whether a file is there as it was recorded: a hole changes its time."""
    status = path.stat() if path.exists() else None
    return status is not None and (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)


def is_consumable(container: Container) -> bool:
    """Whether a file of this kind can be read after a move."""
    return type(container).__name__ in _KINDS


def _save_sealed(path: Path, value: Mapping[str, Any]) -> None:
    kept = json.loads(json.dumps(value))
    save_json(path, {**kept, "crc": seal(kept)})


def _unsealed(path: Path) -> dict[str, Any]:
    """Load a record if its seal is valid: a changed one might free space whose images exist nowhere else."""
    value = load_json(path)
    if isinstance(value, dict) and value.pop("crc", None) == seal(value):
        return value
    raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path} has changed since it was written, or is gone",
        "expected the record of raw data that was consumed",
        f"move {path.parent} away and get the raw data again with imagenet-prep download; finished shards are kept",
    )
