"""Consumption, the raw data of a split that gives its space to the shards while they are made.

The archive is read once, in its order. Its images are appended to a bundle a shard; step by step the bundles are made
durable, then it is remembered how many images they hold, and only then is the space of just those given back: holes are
punched into a tar, other files are removed once all of their images are durable. Which file held what is kept before
the first hole, so that the next run, after a crash at any moment, plans the same shards and goes on.
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
    """A file that convert consumed; ``path`` is where it lay."""

    def place(self, row: Row) -> str:
        """Where a row lay, in words."""
        return f"{self.path.name}, which was consumed"

    def open(self) -> Callable[[Row], Buffer]:
        """Raise the error that says where the images are now."""
        raise gone(self.path)


def gone(path: AnyPath) -> InputError:
    """The error for a file that is needed once more, and was given up on purpose."""
    return InputError(
        f"{path} was consumed: its images are in the shards alone",
        "expected no more need for it: imagenet-prep convert --consume gave its space to the shards",
        "get it again with imagenet-prep download; then "
        "imagenet-prep repair makes wrong or missing shards, imagenet-prep convert another set",
    )


_KINDS: Mapping[str, type[Archive | ParquetImages]] = {each.__name__: each for each in (Archive, ParquetImages)}


@dataclass(frozen=True, slots=True)
class ConsumedFile:
    """A file: its path below DATA_DIR, kind, size, time, and the digests that it was seen to have."""

    path: str
    kind: str
    size: int
    mtime_ns: int
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """What is on record of the raw data of one split that is consumed, or was.

    Args:
        layout: where everything lives.
        split: ``train``.
        files: what is consumed, in the order of the pass.
        shards: the names of those that bundles are for.
        partition: a digest of which images belong to which of them.
    """

    layout: Layout
    split: str
    files: tuple[ConsumedFile, ...]
    shards: tuple[str, ...]
    partition: str

    @property
    def paths(self) -> ConsumedPaths:
        """Where all this is kept."""
        return self.layout.consumed(self.split)

    # the record of it ------------------------------------------------------------------------------------------

    @classmethod
    def find(cls, layout: Layout, split: str) -> Consumption | None:
        """What is on record of a split, or None if its raw data was never consumed.

        Raises:
            InputError: there is a record that can't be understood, or has changed since it was written.
        """
        if local_or_none(layout.data_dir) is None:
            return None  # only files of a disk give their space back
        paths = layout.consumed(split)
        path = paths.record
        if not path.exists():
            if any(each.exists() for each in (paths.position, paths.files, paths.bundles)):
                raise _changed(path)  # what it told is not known: the images would be missing from the set
            return None
        value = _unsealed(path)
        try:
            files = tuple(ConsumedFile(**each) for each in value["files"])
            return cls(layout, split, files, tuple(value["shards"]), value["partition"])
        except (LookupError, TypeError) as error:
            raise _changed(path) from error

    def begin(self, catalog: Catalog) -> None:
        """Put on record what is to be consumed; a record of an earlier time is taken away first, all at once."""
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
        """What the files held."""
        try:
            found = Catalog.load(self.paths.listing, check=True)
        except InputError as error:
            raise _changed(self.paths.listing) from error
        found.containers = [Gone(self.layout.data_dir / each.path) for each in self.files]
        return found

    def containers(self) -> list[Container]:
        """What the files are read through, where they lie now."""
        return [_KINDS[each.kind](path) for each, path in zip(self.files, self._moved, strict=True)]

    @property
    def is_read(self) -> bool:
        """Whether the pass over the files came to its end: all images are in bundles or shards."""
        position = self.position
        return position is not None and position["rows"] == position["of"]

    @property
    def is_over(self) -> bool:
        """Whether all images are in shards."""
        position = self.position
        return position is not None and position["over"] is True

    def end_pass(self, rows: int) -> None:
        """Remember that the shards that stand hold all ``rows`` images: there is nothing to pass over."""
        _save_sealed(self.paths.position, {"rows": rows, "of": rows, "over": False})

    def finish(self) -> None:
        """Remove what is left of the files and the bundles, then remember that all images are in shards."""
        position = self.position
        assert position is not None
        for folder in (self.paths.files, self.paths.bundles):
            shutil.rmtree(folder, ignore_errors=True)
        _save_sealed(self.paths.position, {**position, "over": True})  # which syncs their folder, too

    @property
    def position(self) -> dict[str, Any] | None:
        """How far the pass has come: images in bundles, of how many; whether all are in shards. None: not begun."""
        return _unsealed(self.paths.position) if self.paths.position.exists() else None

    # the pass --------------------------------------------------------------------------------------------------

    def take_files(self) -> None:
        """Move the files to where no other stage finds them, before the pass begins.

        Raises:
            InputError: a file is not there, or was written to.
        """
        with writing(self.paths.folder):
            make_folder(self.paths.files)
            make_folder(self.paths.bundles)
        if self.position is not None:  # then all were, and some may have gone since
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
        """How many images of the pass, from its first on, are durable in bundles; of one that came to its end all."""
        position = self.position
        return 0 if position is None else total if self.is_read else position["rows"]

    def keep(self, done: int, total: int, written: Sequence[Path], following: tuple[int, int] | None) -> None:
        """Make the bundles ``written`` durable, remember that the first ``done`` images are, give their space back.

        In this order. ``following`` is where the next image lies, container and offset: nothing before it is read
        again. None: nothing at all is.
        """
        paths = self.paths
        if written:
            with writing(paths.bundles):
                sync_file_system(paths.bundles)  # all at once; then each is asked for what the disk did not take
            for path in written:
                with writing(path), path.open("rb") as file:
                    os.fsync(file.fileno())
            with writing(paths.bundles):
                fsync_dir(paths.bundles)
        if not self.is_read:  # then fewer may be asked for than it was of
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
        """Give back the space of everything before the image at ``following``, container and offset; None: of all."""
        current, offset = following or (len(self.files), 0)
        for number, path in enumerate(self._moved[: current + 1]):
            with writing(path):
                if number < current:
                    path.unlink(missing_ok=True)
                elif _KINDS[self.files[number].kind].is_sliced and offset:
                    punch(path, 0, offset)


def consumed_file(layout: Layout, container: Container, digests: Mapping[str, str]) -> ConsumedFile:
    """What is put on record of a file, which lies below DATA_DIR."""
    whole = local_path(container.path)
    status, path = whole.stat(), whole.relative_to(local_path(layout.data_dir))
    return ConsumedFile(str(path), type(container).__name__, status.st_size, status.st_mtime_ns, dict(digests))


def _is_same(path: Path, file: ConsumedFile) -> bool:
    """Whether a file is there as it was recorded: a hole changes its time."""
    status = path.stat() if path.exists() else None
    return status is not None and (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)


def is_consumable(container: Container) -> bool:
    """Whether there is a way to read a file of this kind once it was moved."""
    return type(container).__name__ in _KINDS


def _save_sealed(path: Path, value: Mapping[str, Any]) -> None:
    kept = json.loads(json.dumps(value))
    save_json(path, {**kept, "crc": seal(kept)})


def _unsealed(path: Path) -> dict[str, Any]:
    """What was kept, if it is as it was written: anything else might give back what is nowhere else."""
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
