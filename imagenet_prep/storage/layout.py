"""Layout: DATA_DIR -> every path. This module alone spells file names."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import OptionValues, is_command_line, rerun_elsewhere
from imagenet_prep.hints import Hint
from imagenet_prep.storage.location import (
    AnyPath,
    Store,
    local_or_none,
    local_path,
    locate,
    open_store,
    real_path,
    refuse_url,
)
from imagenet_prep.storage.refusals import closed_folder, unreadable

MAX_SHARDS = 9_999_999
"""The most shards of a split: a million shards of 100 MB are 100 TB."""

_SHARD = re.compile("(.+)-([0-9]{5,7})-of-([0-9]{5,7})")
_GROWN = re.compile("(.+)-grown([1-9][0-9]*)")
RAW_NAME = "raw-data"
STATE_NAME = "imagenet-prep"
SETS_NAME = "sets"

_DEEPEST_SETS = 3
_MOST_FOLDERS = 300


def shard_name(split: str, index: int, count: int) -> str:
    """The name of a shard: ``train-00000-of-01024``;
    numbers of more than five digits keep all their digits.
    """
    return f"{split}-{index:05d}-of-{count:05d}"


def expected_names(split: str = "train") -> str:
    """The names that a folder of shards should have, for messages; a set has any number of them."""
    return f"expected files such as {shard_name(split, 0, 8)}, the first of 8 shards"


def parse_shard_name(name: str) -> tuple[str, int, int] | None:
    """Split, index and count from a shard's name, or None if it isn't one."""
    match = _SHARD.fullmatch(name)
    parsed = (match[1], int(match[2]), int(match[3])) if match else None
    return parsed if parsed and shard_name(*parsed) == name else None


def by_number(name: str) -> tuple[str, int, int]:
    """A sort key: shard names sort by their numbers, also beyond five digits;
    other names sort by name.
    """
    return parse_shard_name(name) or (name, 0, 0)


def split_of(name: str) -> str:
    """The split in a shard's name; "" if it isn't one."""
    parsed = parse_shard_name(name)
    return parsed[0] if parsed else ""


def grown_name(split: str, number: int) -> str:
    """The split of the shards that the growth ``number`` of a split added: ``train-grown2``;
    1 is the split itself.
    """
    return f"{split}-grown{number}"


def grown_from(split: str) -> tuple[str, int]:
    """The split that a split belongs to, and the number of its growth:
    ("train", 2) for ``train-grown2``.
    """
    match = _GROWN.fullmatch(split)
    return (match[1], int(match[2])) if match else (split, 1)


class ArchiveFile(Protocol):
    """An archive that users call by its file name."""

    @property
    def filename(self) -> str:
        """The name, without a folder."""
        ...


class _Below:
    """A path below another path of a layout, which the attribute ``folder`` holds."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name

    def __get__(self, layout: Layout, owner: type[Layout]) -> AnyPath:
        folder: AnyPath = getattr(layout, self._folder)
        return folder / self._name


class ConsumedPaths(NamedTuple):
    """Files of a split whose raw data gives its space to the shards.

    Args:
        folder: the place of all others.
        record: the consumed files, the shards made of them, and the progress of the pass (JSON).
        listing: the images that the files held.
        files: the files themselves: nothing finds them under their old names.
        bundles: the images of each shard that is not made yet.
    """

    folder: Path
    record: Path
    listing: Path
    files: Path
    bundles: Path


class Layout(Struct, frozen=True):
    """The paths of a data set.

    Args:
        data_dir: the DATA_DIR of every command.
        raw: another folder of raw input; it is never written to.
        output: another folder for the shards and their state.
        run: a name that no other run has, for its unfinished shards, or "".
        set_name: the prefix of the set's shards (``output_file_prefix``); "" for the set without a
            prefix.

    Raises:
        UsageError: a folder is a URL without a folder of an object store.
    """

    data_dir: AnyPath
    raw: AnyPath | None = None
    output: AnyPath | None = None
    run: str = ""
    set_name: str = ""

    def __post_init__(self) -> None:
        for name in ("data_dir", "raw", "output"):
            if (folder := getattr(self, name)) is not None:
                force_setattr(self, name, locate(folder))

    def refuse_urls(self) -> None:
        """Raise UsageError if a folder is in an object store,
        for steps that require this machine.
        """
        for folder in (self.data_dir, self.raw, self.output):
            if folder is not None:
                refuse_url(folder)

    def elsewhere(self, raw: AnyPath | None = None) -> OptionValues:
        """The options for other folders; ``raw`` is the conversion's,
        if none was given now, and it isn't our own.
        """
        is_own = raw is not None and real_path(raw) == real_path(self.own_raw_dir)
        raw_elsewhere = None if is_own else raw
        folders = (("raw", self.raw or raw_elsewhere), ("output", self.output))
        return tuple((name, path) for name, path in folders if path)

    # sets -----------------------------------------------------------------------------------------

    def sets(self) -> list[Layout]:
        """Each set of the folder. The one without a prefix comes first,
        if it was started or there is no other.

        Raises:
            InputError: the folder may not be searched.
        """
        folder = self.output_dir / STATE_NAME / SETS_NAME
        try:
            return self._sets_in(folder)
        except PermissionError as error:
            closed = closed_folder(Path(str(error.filename or folder)))
            raise unreadable(closed or self.output_dir, error) from error

    def _sets_in(self, folder: AnyPath) -> list[Layout]:
        names = [] if self.set_name else sorted({path.parent.name for path in folder.glob("*/*")})
        state_files = (self.plan_path, self.journal_path, self.manifest_path)
        named_sets = [replace(self, set_name=name) for name in names]
        if named_sets and not any(path.exists() for path in state_files):
            return named_sets
        return [self, *named_sets]

    def one_set(self) -> Layout:
        """The set without a prefix, or the only one of the folder.

        Raises:
            UsageError: several sets are there, and each has a prefix.
        """
        layouts = self.sets()
        set_name = layouts[0].set_name
        if len(layouts) > 1 and set_name:
            names = ", ".join(layout.set_name for layout in layouts)
            raise UsageError(
                f"{self.output_dir} holds several sets: {names}",
                "expected the name of one of them",
                f"give it: Layout(..., set_name={set_name!r})",
            )
        return layouts[0]

    def sets_below(self) -> list[AnyPath]:
        """The folders below the shards' folder that have finished sets, or sets with prefixes:
        a folder in ``output_file_prefix`` is the set's own.

        Few folders are looked at, and none in an object store.
        """
        folders: list[AnyPath] = []
        pending = [(self.output_dir, 0)] if isinstance(self.output_dir, Path) else []
        for folder, depth in pending:
            if depth and Layout(folder)._has_set():
                folders.append(folder)
            if depth < _DEEPEST_SETS and len(pending) < _MOST_FOLDERS:
                pending += [(path, depth + 1) for path in self._folders_in(folder)]
        return folders

    def shards_below(self, splits: Collection[str]) -> list[AnyPath]:
        """The folders in the shards' folder that hold shards of these splits, with a manifest or
        without: imagenet_to_gcs.py makes a folder of each split; none in an object store.
        """
        if not isinstance(self.output_dir, Path):
            return []
        return [
            folder
            for folder in self._folders_in(self.output_dir)[:_MOST_FOLDERS]
            if os.access(folder, os.R_OK | os.X_OK) and Layout(folder).find_shards(splits)
        ]

    def _has_set(self) -> bool:
        """Whether the folder has a finished set, or sets with prefixes."""
        return self.manifest_path.is_file() or (self.state_dir / SETS_NAME).is_dir()

    def sets_near(self) -> list[AnyPath]:
        """The folder above a folder of raw data or of state if it has shards, otherwise the sets
        below; none for a folder that has shards.
        """
        if self.find_shards():
            return []
        above = self.set_above()
        return self.sets_below() if above is None else [above]

    def set_above(self) -> AnyPath | None:
        """The folder above a folder of raw data or of state, if it has shards."""
        above = self.output_dir.parent
        if self.output_dir.name in (RAW_NAME, STATE_NAME) and Layout(above).find_shards():
            return above
        return None

    def _folders_in(self, folder: Path) -> list[Path]:
        """The folders in a folder, except hidden ones, raw data and state."""
        names: list[str] = []
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            names = sorted(
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")
            )
        return [
            folder / name
            for name in names
            if name != STATE_NAME and folder / name != self.own_raw_dir
        ]

    def may_have(self, split: str) -> bool:
        """Whether a split has a name that fits this set."""
        return not self.set_name or f"{split}-".startswith(f"{self.set_name}-")

    # raw input ------------------------------------------------------------------------------------

    @property
    def raw_dir(self) -> AnyPath:
        """The folder of raw input: ``--raw``, otherwise DATA_DIR/raw-data."""
        return self.raw or self.own_raw_dir

    own_raw_dir = _Below("data_dir", RAW_NAME)
    """DATA_DIR/raw-data: download, untar and annotate write here."""

    @property
    def reads_own_raw(self) -> bool:
        """Whether the folder of raw input is DATA_DIR/raw-data."""
        return real_path(self.raw_dir) == real_path(self.own_raw_dir)

    def archive_path(self, archive: ArchiveFile) -> AnyPath:
        """The path to read an archive of images from: in the raw folder, and nowhere else."""
        return self.raw_dir / archive.filename

    def extra_path(self, archive: ArchiveFile) -> AnyPath:
        """The path to read boxes or the devkit from: in the raw folder;
        what it lacks may be where download put it.
        """
        path = self.raw_dir / archive.filename
        downloaded = self.own_raw_dir / archive.filename
        return path if path.exists() or not downloaded.exists() else downloaded

    def download_path(self, archive: ArchiveFile) -> Path:
        """The path to which download writes an official archive."""
        return local_path(self.own_raw_dir) / archive.filename

    def class_tars_dir(self, archive: ArchiveFile) -> AnyPath:
        """The folder to which download writes the class tars of an archive
        of which it fetches some classes.
        """
        return self.own_raw_dir / archive.filename.removesuffix(".tar")

    raw_partial_dir = _Below("own_raw_dir", ".partial")
    """Unfinished downloads and class folders, on the file system of raw-data,
    so that a rename finishes them.
    """

    def part_path(self, filename: str) -> Path:
        """The received part of a file whose download is unfinished;
        its state is in a file next to it.
        """
        return local_path(self.raw_partial_dir) / f"{filename}.part"

    def copy_path(self, key: str) -> Path:
        """The version of a site's copy that is being downloaded (JSON)."""
        return local_path(self.raw_partial_dir) / f"{key}.json"

    def corrupt_path(self, filename: str, digest: str) -> Path:
        """The path that keeps a download with a wrong digest: no stage reads it."""
        return local_path(self.raw_partial_dir) / f"{filename}.corrupt-{digest[:8]}"

    checked_path = _Below("raw_dir", "checked.json")
    """The archives that were verified: size, mtime_ns and MD5 by file name (JSON)."""

    def images_dir(self, split: str) -> AnyPath:
        """The folder to which untar writes a split: raw-data/train, raw-data/validation."""
        return self.own_raw_dir / split

    boxes_csv = _Below("own_raw_dir", "imagenet_2012_bounding_boxes.csv")
    """The CSV of train boxes that annotate writes."""
    validation_boxes_csv = _Below("own_raw_dir", "imagenet_2012_validation_bounding_boxes.csv")
    """The CSV of validation boxes that annotate writes on request."""

    # shards ---------------------------------------------------------------------------------------

    @property
    def output_dir(self) -> AnyPath:
        """The folder of the shards: ``--output``, otherwise DATA_DIR."""
        return self.output or self.data_dir

    @property
    def shards(self) -> Store:
        """The finished shards."""
        return open_store(self.output_dir, self.partial_dir)

    @property
    def indexes(self) -> Store:
        """The two index files of each shard."""
        return open_store(self.index_dir, self.partial_dir)

    def find_shards(self, splits: Collection[str] | None = None) -> dict[str, int]:
        """The size in bytes of every file or folder named like a shard, by name; None: of any
        split.

        It costs one listing. A dangling link is no shard.

        Raises:
            InputError: the folder can't be read.
        """
        sizes: dict[str, int] = {}
        try:
            with self.shards.scan() as entries:
                for entry in entries:
                    split = split_of(entry.name)
                    if not split or (splits is not None and split not in splits):
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        sizes[entry.name] = entry.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise unreadable(self.output_dir, error) from error
        return dict(sorted(sizes.items()))

    def shard_path(self, name: str) -> AnyPath:
        """A shard under its final name."""
        return self.output_dir / name

    @property
    def state_dir(self) -> AnyPath:
        """Everything that belongs to the set and is neither raw data nor a finished shard."""
        folder = self.output_dir / STATE_NAME
        return folder / SETS_NAME / self.set_name if self.set_name else folder

    @property
    def lock_paths(self) -> tuple[Path, ...]:
        """Lock files, held while a command writes below DATA_DIR or in the shards' folder.

        A DATA_DIR that can't be written has none if the shards go elsewhere: it is only read, as
        the folder of ``--raw``.

        Object stores have no lock files: a killed run's lock would block others, and two runs at
        once make the same objects with the same bytes.
        """
        folders = [self.data_dir, self.output_dir]
        if self.output is not None and _is_read_only(self.data_dir):
            folders.remove(self.data_dir)
        return _locks_of(folders)

    @property
    def all_lock_paths(self) -> tuple[Path, ...]:
        """The same for a command that writes below DATA_DIR in any case: boxes, archives."""
        return _locks_of([self.data_dir, self.output_dir])

    @property
    def advice_if_read_only(self) -> str:
        """The advice for a DATA_DIR that can only be read: another one that reads its raw data;
        "" without raw data in it.
        """
        is_elsewhere = self.raw is not None
        if self.output is not None and not _is_read_only(self.data_dir):
            is_elsewhere = True
        raw_dir = local_or_none(self.own_raw_dir)
        if is_elsewhere or raw_dir is None or not raw_dir.is_dir() or not is_command_line():
            return ""
        rerun = rerun_elsewhere(self.data_dir, "NEW_FOLDER", (("raw", raw_dir),))
        if rerun is None:
            return ""
        return Hint("read the raw data there and write to another folder: ", rerun)

    journal_path = _Below("state_dir", "journal.jsonl")
    """One JSON line per finished shard."""
    manifest_path = _Below("state_dir", "manifest.json")
    """The finished set: its shards, inputs and settings."""
    damaged_images_path = _Below("state_dir", "damaged-images.jsonl")
    """The images that the finished set leaves out as damaged, one JSON line each;
    it exists only if there are any.
    """
    annotate_path = _Below("data_dir", f"{STATE_NAME}/annotate.json")
    """The inputs and outputs of annotate: fingerprint of its input,
    digest of its output, totals (JSON).
    """
    problems_path = _Below("state_dir", "problems.jsonl")
    """The findings of the last verify, one JSON line each."""
    plan_path = _Below("state_dir", "plan/plan.json")
    """The plan, written before the first shard:
    all shards to make, and where their images are (JSON).
    """

    def replaced_path(self, generation: str) -> AnyPath:
        """The files of an older set that give way to the plan of this generation;
        gone once they are removed (JSON).
        """
        return self.plan_path.with_name(f"replaced-{generation}.json")

    def rank_path(self, part: str) -> AnyPath:
        """The mark of a rank that makes shards of the set, until merge:
        ``rank-3-of-8-HOST-...``.
        """
        return self.plan_path.with_name(part)

    def rank_parts(self) -> list[str]:
        """The names of all ranks' marks."""
        return [path.name for path in self.plan_path.parent.glob("rank-*")]

    def found_by(self, part: str) -> tuple[AnyPath, AnyPath]:
        """Findings and verdict of a verify: of the rank ``part``, or of the whole set with ""."""
        paths = self.problems_path, self.verdict_path
        return (
            (paths[0].with_stem(f"problems-{part}"), paths[1].with_stem(f"verdict-{part}"))
            if part
            else paths
        )

    def found_by_ranks(self) -> list[AnyPath]:
        """The findings and verdicts of all ranks."""
        return [
            *self.state_dir.glob("problems-rank-*.jsonl"),
            *self.state_dir.glob("verdict-rank-*.json"),
        ]

    demo_path = _Below("data_dir", f"{STATE_NAME}/demo.json")
    """The mark of a folder made by the demo: its number of classes and images (JSON)."""

    @property
    def consumed_dir(self) -> Path:
        """Raw data that gives its space to the shards, and its records after it is gone."""
        return local_path(self.data_dir) / STATE_NAME / "consumed"

    def consumed(self, split: str) -> ConsumedPaths:
        """The consumed files of one split."""
        folder = self.consumed_dir / split
        return ConsumedPaths(
            folder, *(folder / name for name in ("record.json", "listing", "files", "bundles"))
        )

    verdict_path = _Below("state_dir", "verdict.json")
    """The verdict of the last verify, and the files that it covers (JSON)."""
    report_path = _Below("state_dir", "report.html")
    """The report page."""
    index_dir = _Below("state_dir", "index")
    """Record offsets of each shard."""

    def index_path(self, name: str) -> AnyPath:
        """Record offsets of one shard: a line "offset length" per record,
        as NVIDIA DALI's tfrecord2idx writes them.
        """
        return self.index_dir / f"{name}.idx"

    def listing_path(self, name: str) -> AnyPath:
        """The records of one shard: a line "CRC name" per record,
        with the stored CRC in hexadecimal.
        """
        return self.index_dir / f"{name}.list"

    def index_paths(self, name: str) -> tuple[AnyPath, AnyPath]:
        """Both index files of one shard."""
        return self.index_path(name), self.listing_path(name)

    def without_index(self, names: Iterable[str]) -> list[str]:
        """The shards among these whose index lacks a file; the folder is listed once."""
        index_files = set(self.indexes.list())
        return [name for name in names if not {f"{name}.idx", f"{name}.list"} <= index_files]

    export_path = _Below("state_dir", "export.json")
    """The format of an export (JSON)."""
    exported_path = _Below("state_dir", "exported.jsonl")
    """The finished files of an export with their bytes, one JSON line each."""
    handed_over_dir = _Below("state_dir", "handed-over")
    """The data of each exported shard that its format needs once all are exported."""
    lists_dir = _Below("state_dir", "lists")
    """Manifests made for recipes whose data is in ``--raw``."""
    rows_dir = _Below("state_dir", "rows")
    """The rows that the function of a recipe yielded,
    with the images that it had as bytes (zip).
    """
    partials_dir = _Below("state_dir", "partial")
    """Unfinished shards, a folder per run."""

    @property
    def partial_dir(self) -> AnyPath:
        """Unfinished shards of this run."""
        return self.partials_dir / self.run

    def meeting_point(self, token: str) -> Path | None:
        """A file that shows an engine that all its machines share this folder;
        None: a URL is shared anyway.
        """
        return local_or_none(self.partial_dir / f"met-{token}")

    bundle_dir = _Below("partial_dir", "bundles")
    """The images of each unfinished shard, if the archive is read in its own order."""


def _locks_of(folders: Iterable[AnyPath]) -> tuple[Path, ...]:
    """The lock files of folders; those in a store have none."""
    paths = (folder / STATE_NAME / "lock" for folder in folders)
    return tuple(local for path in paths if (local := local_or_none(path)) is not None)


def _is_read_only(folder: AnyPath) -> bool:
    """Whether a local folder exists and a command may not write its state there."""
    local = local_or_none(folder)
    if local is None or not local.is_dir():
        return False
    state = local / STATE_NAME
    return not os.access(state if state.is_dir() else local, os.W_OK)
