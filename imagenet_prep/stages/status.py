"""How far each stage has come, and what to run next: told by names, sizes and records alone, within a second."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from imagenet_prep import ilsvrc2012
from imagenet_prep.checks.verdict import load_verdict
from imagenet_prep.errors import InputError
from imagenet_prep.layout import Layout, parse_shard_name
from imagenet_prep.manifest import Journal, load_manifest
from imagenet_prep.planning import ConvertOptions, options_from
from imagenet_prep.sources.imagenet import find_source
from imagenet_prep.storage import load_json

State = Literal["done", "partly", "not begun", "problems", "unknown"]


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage: ``detail`` says in words what there is of what there should be."""

    stage: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class Status:
    """Every stage in order, and the command to run next."""

    stages: tuple[StageStatus, ...]
    next_command: str

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return dataclasses.asdict(self)


def status(layout: Layout) -> Status:
    """How far each stage has come; reads no archive and no shard."""
    stages = (
        _download(layout),
        _untar(layout),
        _annotate(layout),
        _convert(layout),
        _verify(layout),
    )
    return Status(stages, _next_command(layout, {stage.stage: stage.state for stage in stages}))


# the stages ----------------------------------------------------------------------------------------------------


def _download(layout: Layout) -> StageStatus:
    archives = [ilsvrc2012.ARCHIVES[key] for key in ilsvrc2012.DEFAULT_ARCHIVES]
    present = [archive for archive in archives if layout.archive_path(archive).is_file()]
    checked = sum(_is_checked(layout, archive) for archive in present)
    begun = _count(layout.raw_partial_dir, ".tar.part") + _count(layout.raw_partial_dir, ".gz.part")
    detail = f"{len(present)} of {len(archives)} archives, {checked} of them checked"
    if begun:
        detail += f", {begun} begun"
    sources = [find_source(layout, split) for split in ilsvrc2012.SPLITS]
    folders = [source.name for source in sources if source and source.is_dir()]
    if folders:
        detail += f"; images in folders: {', '.join(folders)}"
    return StageStatus("download", _state(len(present), len(archives), begun > 0), detail)


def _is_checked(layout: Layout, archive: ilsvrc2012.Archive) -> bool:
    """Whether an archive's digest was compared, and the file not touched since."""
    checked = load_json(layout.checked_path)
    entry = checked.get(archive.filename) if isinstance(checked, dict) else None
    found = layout.archive_path(archive).stat()
    return (
        isinstance(entry, dict)
        and bool(entry.get("md5"))
        and (entry.get("size"), entry.get("mtime_ns")) == (found.st_size, found.st_mtime_ns)
    )


def _untar(layout: Layout) -> StageStatus:
    counts = {split: _count_classes(layout.images_dir(split)) for split in ilsvrc2012.SPLITS}
    words = (f"{count:,} of {ilsvrc2012.CLASSES:,} {split} class folders" for split, count in counts.items())
    expected = ilsvrc2012.CLASSES * len(counts)
    return StageStatus("untar", _state(sum(counts.values()), expected), f"{', '.join(words)} (optional)")


def _count_classes(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    with os.scandir(folder) as entries:
        return sum(ilsvrc2012.is_wnid(entry.name) and entry.is_dir() for entry in entries)


def _annotate(layout: Layout) -> StageStatus:
    if not layout.boxes_csv.is_file():
        return StageStatus("annotate", "not begun", "no boxes")
    with layout.boxes_csv.open("rb") as file:
        boxes = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    return StageStatus("annotate", "done", _number(boxes, "box", "boxes"))


def _convert(layout: Layout) -> StageStatus:
    sizes = _shard_sizes(layout)
    recorded, is_complete = _recorded(layout)
    if not recorded:
        words = f"{_number(len(sizes), 'shard')} not made here" if sizes else "no shards"
        return StageStatus("convert", "unknown" if sizes else "not begun", words)
    done = sum(sizes.get(name) == size for name, size in recorded.items())
    planned = len(recorded) if is_complete else _planned(recorded)
    return StageStatus("convert", _state(done, planned, begun=True), f"{done:,} of {planned:,} shards")


def _shard_sizes(layout: Layout) -> dict[str, int]:
    try:
        manifest = load_manifest(layout.manifest_path)
    except InputError:
        manifest = None
    return layout.find_shards(manifest.splits if manifest else ilsvrc2012.SPLITS)


def _recorded(layout: Layout) -> tuple[dict[str, int], bool]:
    """The size of each finished shard as recorded, and whether that record is of a whole conversion."""
    try:
        manifest = load_manifest(layout.manifest_path)
    except InputError:
        manifest = None  # verify says what is wrong with it
    if manifest is not None:
        return {name: info.size for name, info in manifest.shards.items()}, True
    journal = Journal(layout.journal_path)
    return {name: info.size for name in journal.names() if (info := journal.get(name))}, False


def _planned(names: Iterable[str]) -> int:
    """How many shards a conversion under way will make, as far as the names of those made tell."""
    counts: dict[str, Counter[int]] = {split: Counter() for split in ilsvrc2012.SPLITS}
    for parsed in map(parse_shard_name, names):
        if parsed is not None and parsed[0] in counts:
            counts[parsed[0]][parsed[2]] += 1
    return sum(found.most_common(1)[0][0] if found else ilsvrc2012.SHARDS[split] for split, found in counts.items())


def _verify(layout: Layout) -> StageStatus:
    if not _shard_sizes(layout):
        return StageStatus("verify", "not begun", "no shards")
    kept = load_verdict(layout)
    if kept is None:
        return StageStatus("verify", "not begun", "the shards have not been verified yet")
    if not kept.is_current:
        return StageStatus("verify", "partly", "shards have changed since the last verify")
    verdict = kept.verdict
    if verdict.problems:
        detail = f"{_number(len(verdict.problems), 'problem')} found: {layout.problems_path}"
        return StageStatus("verify", "problems", detail)
    if verdict.depth == "quick":
        return StageStatus("verify", "partly", "a quick look found no problem; not every byte was read")
    what = "a part of ILSVRC2012" if verdict.is_part else "ILSVRC2012"
    return StageStatus("verify", "done", f"{what}, whole and right")


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not begun"


def _count(folder: Path, suffix: str) -> int:
    return sum(name.endswith(suffix) for name in os.listdir(folder)) if folder.is_dir() else 0


# what next -----------------------------------------------------------------------------------------------------


def _next_command(layout: Layout, states: dict[str, State]) -> str:
    if states["verify"] == "done":
        return _command("report", layout.output_dir)
    if states["verify"] == "problems" and layout.manifest_path.exists():
        return _command("repair", layout.data_dir, *_options(layout))
    if states["convert"] in ("done", "unknown"):
        return _command("verify", layout.output_dir)
    options = [*_options(layout), *_former_options(layout)]
    sources = [find_source(layout, split) for split in ilsvrc2012.SPLITS]
    if not all(sources) and states["convert"] == "not begun":
        return _command("download", layout.data_dir)
    has_boxes = layout.archive_path(ilsvrc2012.ARCHIVES["boxes"]).is_file()
    if states["convert"] == states["annotate"] == "not begun" and has_boxes:
        return _command("annotate", layout.data_dir)
    return _command("convert", layout.data_dir, *options)


def _options(layout: Layout) -> list[str]:
    given = (("--raw", layout.raw), ("--output", layout.output))
    return [text for option, path in given if path for text in (option, str(path))]


def _former_options(layout: Layout) -> list[str]:
    """The options of the conversion that the manifest records: the same command again makes the same shards."""
    try:
        manifest = load_manifest(layout.manifest_path)
        former = options_from(manifest) if manifest else ConvertOptions()
    except InputError:
        return []
    how, usual = former.reencode, ConvertOptions()
    values = (
        ("--train-shards", former.train_shards, usual.train_shards),
        ("--validation-shards", former.validation_shards, usual.validation_shards),
        ("--seed", former.seed, usual.seed),
        ("--compression", former.compression, usual.compression),
        ("--resize", how and how.resize, None),
        ("--max-side", how and how.max_side, None),
        ("--quality", how and how.quality, None),
    )
    flags = {
        "--no-shuffle": not former.shuffle,
        "--validation-boxes": former.validation_boxes,
        "--reencode": how is not None,
        "--allow-incomplete": former.allow_incomplete,
        "--skip-bad": former.skip_bad,
    }
    words = [text for name, value, default in values if value not in (None, default) for text in (name, str(value))]
    return words + [name for name, is_set in flags.items() if is_set]


def _command(stage: str, data_dir: Path, *options: str) -> str:
    return shlex.join(["imagenet-prep", stage, str(data_dir), *options])
