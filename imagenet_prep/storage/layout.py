"""DATA_DIR -> every path. The only place that spells a file name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from imagenet_prep.escaping import Settings
from imagenet_prep.storage.location import AnyPath, Store, local_or_none, local_path, locate, open_store, refuse_url

MAX_SHARDS = 9_999_999
"""Of a split: a million shards of a tenth of a gigabyte are a hundred terabytes."""

_SHARD = re.compile("(.+)-([0-9]{5,7})-of-([0-9]{5,7})")
RAW_NAME = "raw-data"
STATE_NAME = "imagenet-prep"


def shard_name(split: str, index: int, count: int) -> str:
    """The name of a shard: ``train-00000-of-01024``; numbers of more than five digits are as long as they are."""
    return f"{split}-{index:05d}-of-{count:05d}"


def parse_shard_name(name: str) -> tuple[str, int, int] | None:
    """Split, index and count of a shard's name, or None if it isn't one."""
    match = _SHARD.fullmatch(name)
    parsed = (match[1], int(match[2]), int(match[3])) if match else None
    return parsed if parsed and shard_name(*parsed) == name else None


def by_number(name: str) -> tuple[str, int, int]:
    """What sorts the names of shards by their numbers, wherever there are more than five digits; others by name."""
    return parse_shard_name(name) or (name, 0, 0)


def split_of(name: str) -> str:
    """What the name of a shard begins with; "" if it isn't one."""
    parsed = parse_shard_name(name)
    return parsed[0] if parsed else ""


class Named(Protocol):
    """An archive that people call by the name of its file."""

    @property
    def filename(self) -> str:
        """Without a folder."""
        ...


class _Below:
    """A place below another one of a layout, which the attribute ``folder`` holds."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name

    def __get__(self, layout: Layout, owner: type[Layout]) -> AnyPath:
        folder: AnyPath = getattr(layout, self._folder)
        return folder / self._name


class _LocalBelow(_Below):
    """One that only this machine can have; raises UsageError if the folder is in another store."""

    def __get__(self, layout: Layout | ConsumedPaths, owner: type[Layout | ConsumedPaths]) -> Path:
        folder: AnyPath = getattr(layout, self._folder)
        return local_path(folder) / self._name


@dataclass(frozen=True, slots=True)
class ConsumedPaths:
    """What is kept of a split whose raw data gives its space to the shards."""

    folder: Path

    record = _LocalBelow("folder", "record.json")
    """Which files these are, and which shards are made of them (JSON): with it, all else counts."""
    position = _LocalBelow("folder", "position.json")
    """How many images are durable in bundles (JSON)."""
    listing = _LocalBelow("folder", "listing")
    """Which images the files held."""
    files = _LocalBelow("folder", "files")
    """The files themselves, from the first hole on: under their own names nobody finds them any more."""
    bundles = _LocalBelow("folder", "bundles")
    """The images of each shard that is not made yet."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lives.

    Args:
        data_dir: the DATA_DIR of every command.
        raw: another place to read raw input from; it is never written to.
        output: another place for the shards and the state that belongs to them.
        run: whose unfinished shards: a name that no other run has, or "".

    Raises:
        UsageError: one of them is a URL that names no folder of an object store.
    """

    data_dir: AnyPath
    raw: AnyPath | None = None
    output: AnyPath | None = None
    run: str = ""

    def __post_init__(self) -> None:
        for name in ("data_dir", "raw", "output"):
            if (where := getattr(self, name)) is not None:
                object.__setattr__(self, name, locate(where))

    def refuse_urls(self) -> None:
        """Raise UsageError if one of its folders is in an object store: for what works on this machine alone."""
        for folder in (self.data_dir, self.raw, self.output):
            if folder is not None:
                refuse_url(folder)

    def elsewhere(self, raw: AnyPath | None = None) -> Settings:
        """Where else things are: ``raw`` is that of the conversion, if none was given now."""
        given = (("raw", self.raw or raw), ("output", self.output))
        return tuple((name, path) for name, path in given if path)

    # raw input -------------------------------------------------------------------------------------------------

    @property
    def raw_dir(self) -> AnyPath:
        """Where raw input is read from: ``--raw``, else DATA_DIR/raw-data."""
        return self.raw or self.own_raw_dir

    own_raw_dir = _Below("data_dir", RAW_NAME)
    """DATA_DIR/raw-data: where download, untar and annotate write."""

    def archive_path(self, archive: Named) -> AnyPath:
        """Where an official archive is read from: the raw folder, or where download put what that lacks."""
        path, own = self.raw_dir / archive.filename, self.own_raw_dir / archive.filename
        return path if path.exists() or not own.exists() else own

    def download_path(self, archive: Named) -> Path:
        """Where download puts an official archive."""
        return local_path(self.own_raw_dir) / archive.filename

    def class_tars_dir(self, archive: Named) -> AnyPath:
        """Where download puts the tars of classes, of an archive that it fetches some classes of."""
        return self.own_raw_dir / archive.filename.removesuffix(".tar")

    raw_partial_dir = _Below("own_raw_dir", ".partial")
    """Unfinished downloads and class folders, on the file system of raw-data so that a rename finishes them."""

    def part_path(self, archive: Named) -> Path:
        """What has come of an archive that is still being downloaded; its state lies beside it."""
        return local_path(self.raw_partial_dir) / f"{archive.filename}.part"

    def copy_path(self, key: str) -> Path:
        """What a site remembers of the copy that is fetched from it: which version it is (JSON)."""
        return local_path(self.raw_partial_dir) / f"{key}.json"

    def corrupt_path(self, archive: Named, digest: str) -> Path:
        """Where a download with a wrong digest is kept: no stage reads it."""
        return local_path(self.raw_partial_dir) / f"{archive.filename}.corrupt-{digest[:8]}"

    checked_path = _Below("raw_dir", "checked.json")
    """Which archives were checked against which digest: size, mtime_ns and MD5 by file name (JSON)."""

    def images_dir(self, split: str) -> AnyPath:
        """Where untar puts a split: raw-data/train, raw-data/validation."""
        return self.own_raw_dir / split

    boxes_csv = _Below("own_raw_dir", "imagenet_2012_bounding_boxes.csv")
    """What annotate writes."""
    validation_boxes_csv = _Below("own_raw_dir", "imagenet_2012_validation_bounding_boxes.csv")
    """What annotate writes for validation images, when asked to."""

    # shards ----------------------------------------------------------------------------------------------------

    @property
    def output_dir(self) -> AnyPath:
        """Where the shards go: ``--output``, else DATA_DIR."""
        return self.output or self.data_dir

    @property
    def shards(self) -> Store:
        """The finished shards."""
        return open_store(self.output_dir, self.partial_dir)

    @property
    def indexes(self) -> Store:
        """The two files beside each of them."""
        return open_store(self.index_dir, self.partial_dir)

    def find_shards(self, splits: Collection[str]) -> dict[str, int]:
        """The size in bytes of everything under the name of a shard of these splits, by name."""
        shards = self.shards
        names = [name for name in shards.list() if (parsed := parse_shard_name(name)) and parsed[0] in splits]
        return {name: size for name in names if (size := shards.size(name)) is not None}

    def shard_path(self, name: str) -> AnyPath:
        """A shard under its final name."""
        return self.output_dir / name

    state_dir = _Below("output_dir", STATE_NAME)
    """Everything of ours that is neither raw data nor a finished shard."""

    @property
    def lock_paths(self) -> tuple[Path, ...]:
        """Held while a command writes below DATA_DIR, or where the shards go.

        There are none in an object store: what a killed run left of one would have to be waited for there, and two runs
        at once make the same objects of the same bytes.
        """
        paths = self.data_dir / STATE_NAME / "lock", self.state_dir / "lock"
        return tuple(local for path in paths if (local := local_or_none(path)) is not None)

    journal_path = _Below("state_dir", "journal.jsonl")
    """One JSON line a finished shard."""
    manifest_path = _Below("state_dir", "manifest.json")
    """What was made, from what, how."""
    annotate_path = _Below("data_dir", f"{STATE_NAME}/annotate.json")
    """What annotate made and from what: fingerprint of its input, digest of its output, totals (JSON)."""
    problems_path = _Below("state_dir", "problems.jsonl")
    """The findings of the last verify, one JSON line each."""
    plan_path = _Below("state_dir", "plan/plan.json")
    """What was decided before the first shard: all shards to come, and where their images lay (JSON)."""

    def rank_path(self, part: str) -> AnyPath:
        """What says that a rank makes shards of the set, until all ranks' records are one: ``rank-3-of-8-HOST-...``."""
        return self.plan_path.with_name(part)

    def rank_parts(self) -> list[str]:
        """The names of all of these."""
        return [path.name for path in self.plan_path.parent.glob("rank-*")]

    def found_by(self, part: str) -> tuple[AnyPath, AnyPath]:
        """Findings and verdict of a verify: of one that checked a rank's shards, or with "" of all."""
        paths = self.problems_path, self.verdict_path
        return (paths[0].with_stem(f"problems-{part}"), paths[1].with_stem(f"verdict-{part}")) if part else paths

    def found_by_ranks(self) -> list[AnyPath]:
        """All that was found by ranks."""
        return [*self.state_dir.glob("problems-rank-*.jsonl"), *self.state_dir.glob("verdict-rank-*.json")]

    demo_path = _Below("data_dir", f"{STATE_NAME}/demo.json")
    """That the demo made this folder: how many classes and images it has (JSON)."""
    consumed_dir = _LocalBelow("data_dir", f"{STATE_NAME}/consumed")
    """Raw data that gives its space to the shards, and what is known of it once it is gone."""

    def consumed(self, split: str) -> ConsumedPaths:
        """That of one split."""
        return ConsumedPaths(self.consumed_dir / split)

    verdict_path = _Below("state_dir", "verdict.json")
    """The verdict of the last verify, and which files it is about (JSON)."""
    report_path = _Below("state_dir", "report.html")
    """The page to look at."""
    index_dir = _Below("state_dir", "index")
    """Record offsets of each shard."""

    def index_path(self, name: str) -> AnyPath:
        """Record offsets of one shard: a line "offset length" a record, as NVIDIA DALI's tfrecord2idx writes them."""
        return self.index_dir / f"{name}.idx"

    def listing_path(self, name: str) -> AnyPath:
        """What each record of one shard is: a line "CRC name" a record, the CRC as it is stored, in hexadecimal."""
        return self.index_dir / f"{name}.list"

    def index_paths(self, name: str) -> tuple[AnyPath, AnyPath]:
        """Both files that make the index of one shard."""
        return self.index_path(name), self.listing_path(name)

    def without_index(self, names: Iterable[str]) -> list[str]:
        """Those of these shards whose index lacks a file, told by one look at the folder."""
        there = set(self.indexes.list())
        return [name for name in names if not {f"{name}.idx", f"{name}.list"} <= there]

    export_path = _Below("state_dir", "export.json")
    """Of an export: to which container (JSON). Its journal has a line a shard, ``.list`` the files that it became."""
    lists_dir = _Below("state_dir", "lists")
    """Manifests that were made for recipes whose data is in ``--raw``."""
    partials_dir = _Below("state_dir", "partial")
    """What is unfinished, a folder a run."""

    @property
    def partial_dir(self) -> AnyPath:
        """Unfinished shards of this run."""
        return self.partials_dir / self.run

    def meeting_point(self, token: str) -> Path | None:
        """A file by which an engine of several machines sees that all have this folder; None: a URL is one folder."""
        return local_or_none(self.partial_dir / f"met-{token}")

    bundle_dir = _Below("partial_dir", "bundles")
    """The images of each unfinished shard, where the archive is read in its own order."""
