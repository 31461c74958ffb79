"""How far each stage has come, and what to run next: told by names, sizes and records alone, within a second."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from imagenet_prep import ilsvrc2012
from imagenet_prep.checks.verdict import load_verdict
from imagenet_prep.errors import InputError, PrepError
from imagenet_prep.escaping import command, command_line
from imagenet_prep.layout import Layout, parse_shard_name
from imagenet_prep.manifest import Journal, Manifest, load_manifest
from imagenet_prep.planning import options_from
from imagenet_prep.sources.imagenet import find_source
from imagenet_prep.storage.plain import load_json
from imagenet_prep.underway import (
    RecipeSet,
    command_again,
    find_recipe_set,
    load_beginning,
    option_words,
)
from imagenet_prep.wording import number_of

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
    """How far each stage has come; reads no archive and no shard. A recipe's data set has only the last two."""
    recipe = find_recipe_set(layout)
    if recipe is not None:
        return _recipe_status(layout, recipe)
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
    return StageStatus("annotate", "done", number_of(boxes, "box", "boxes"))


def _convert(layout: Layout) -> StageStatus:
    sizes = _shard_sizes(layout)
    recorded, is_complete = _recorded(layout)
    if not recorded:
        words = f"{number_of(len(sizes), 'shard')} not made here" if sizes else "no shards"
        return StageStatus("convert", "unknown" if sizes else "not begun", words)
    done = [name for name, size in recorded.items() if sizes.get(name) == size]
    planned = len(recorded) if is_complete else _planned(layout, recorded)
    detail = f"{len(done):,} of {number_of(planned, 'shard')}"
    lost = sum(not _has_index(layout, name) for name in done)
    if lost:
        detail += f", {lost:,} of them without their index"
    return StageStatus("convert", _state(len(done) - lost, planned, begun=True), detail)


def _has_index(layout: Layout, name: str) -> bool:
    return all(path.exists() for path in layout.index_paths(name))


def _lost_indices(layout: Layout) -> bool:
    """Whether a finished shard has lost its index: verify would say so."""
    recorded, _ = _recorded(layout)
    return not all(_has_index(layout, name) for name in recorded)


def _shard_sizes(layout: Layout) -> dict[str, int]:
    manifest = _manifest(layout)
    return layout.find_shards(manifest.splits if manifest else ilsvrc2012.SPLITS)


def _manifest(layout: Layout) -> Manifest | None:
    try:
        return load_manifest(layout.manifest_path)
    except InputError:
        return None  # verify says what is wrong with it


def _recorded(layout: Layout) -> tuple[dict[str, int], bool]:
    """The size of each finished shard as recorded, and whether that record is of a whole conversion."""
    manifest = _manifest(layout)
    if manifest is not None:
        return {name: info.size for name, info in manifest.shards.items()}, True
    journal = Journal(layout.journal_path)
    return {name: info.size for name in journal.names() if (info := journal.get(name))}, False


def _planned(layout: Layout, names: Iterable[str]) -> int:
    """How many shards a conversion under way will make: as it said, else as far as the names of those made tell."""
    begun = load_beginning(layout)
    if begun is not None:
        return sum(begun.shards.values())
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
    if not kept.is_current or (not kept.verdict.problems and _lost_indices(layout)):
        return StageStatus("verify", "partly", "shards have changed since the last verify")
    verdict = kept.verdict
    if verdict.problems:
        detail = f"{number_of(len(verdict.problems), 'problem')} found: {layout.problems_path}"
        if not _is_mendable(layout):
            first = verdict.problems[0]
            detail += f"; {first.subject}: {first.remedy or first.detail}"
        return StageStatus("verify", "problems", detail)
    if verdict.depth == "quick":
        return StageStatus("verify", "partly", "a quick look found no problem; not every byte was read")
    if verdict.is_part and not verdict.has_manifest:
        return StageStatus("verify", "done", "no fault found in what is there; whether all is, no manifest tells")
    what = "a part of ILSVRC2012" if verdict.is_part else verdict.dataset
    return StageStatus("verify", "done", f"{what}, whole and right")


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not begun"


def _count(folder: Path, suffix: str) -> int:
    return sum(name.endswith(suffix) for name in os.listdir(folder)) if folder.is_dir() else 0


# the data set of a recipe --------------------------------------------------------------------------------------


def _recipe_status(layout: Layout, recipe: RecipeSet) -> Status:
    if recipe.manifest is not None:
        convert, verify = _convert(layout), _verify(layout)
    else:
        convert = StageStatus("convert", "partly", _under_way(layout))
        verify = StageStatus("verify", "not begun", "the conversion has not come to its end")
    if recipe.manifest is None:
        following = command_again(layout, recipe)
    elif verify.state == "done":
        following = command("report", layout.output_dir)
    elif convert.state != "done" or (verify.state == "problems" and _is_mendable(layout)):
        following = command("repair", layout.data_dir, *_options(layout))
    else:
        following = command("verify", layout.output_dir)
    return Status((convert, verify), following)


def _under_way(layout: Layout) -> str:
    """What the journal tells of a conversion under way: which shards stand, and of how many by their names."""
    recorded, _ = _recorded(layout)
    parsed = {name: found for name in recorded if (found := parse_shard_name(name))}
    sizes = layout.find_shards({split for split, _, _ in parsed.values()})
    done = Counter(parsed[name][::2] for name in sorted(parsed) if sizes.get(name) == recorded[name])
    begun = load_beginning(layout)
    expected = list(begun.shards.items()) if begun and done else list(done)
    words = (f"{split}: {done[split, planned]:,} of {number_of(planned, 'shard')}" for split, planned in expected)
    return "; ".join(words) or "begun, no shard is done yet"


# what next -----------------------------------------------------------------------------------------------------


def unknown(reason: PrepError, folder: Path) -> Status:
    """What there is to say where one may not look: why, and the command that shows whose the folder is."""
    said = ": ".join(part for part in (reason.what, reason.detail) if part)
    stages = tuple(StageStatus(stage, "unknown", said) for stage in ("convert", "verify"))
    return Status(stages, command_line(["ls", "-la", str(folder)]))


def _next_command(layout: Layout, states: dict[str, State]) -> str:
    if states["verify"] == "done":
        return command("report", layout.output_dir)
    if states["verify"] == "problems" and _is_mendable(layout):
        return command("repair", layout.data_dir, *_options(layout))
    if states["convert"] in ("done", "unknown"):
        return command("verify", layout.output_dir)
    options = [*_options(layout), *_former_options(layout)]
    sources = [find_source(layout, split) for split in ilsvrc2012.SPLITS]
    if not all(sources) and states["convert"] == "not begun":
        return command("download", layout.data_dir)
    has_boxes = layout.archive_path(ilsvrc2012.ARCHIVES["boxes"]).is_file()
    if states["convert"] == states["annotate"] == "not begun" and has_boxes:
        return command("annotate", layout.data_dir, *(("--raw", str(layout.raw)) if layout.raw else ()))
    return command("convert", layout.data_dir, *options)


def _is_mendable(layout: Layout) -> bool:
    """Whether repair can do something about what the last verify found: it has no remedy for a file too many."""
    kept, manifest = load_verdict(layout), _manifest(layout)
    return kept is not None and manifest is not None and bool(kept.verdict.faulty.keys() & manifest.shards.keys())


def _options(layout: Layout) -> list[str]:
    """Where else the raw data and the shards are: as given, or as the conversion was told."""
    begun = load_beginning(layout)
    raw = layout.raw or (begun.raw if begun else None)
    given = (("--raw", raw), ("--output", layout.output))
    return [text for option, path in given if path for text in (option, str(path))]


def _former_options(layout: Layout) -> list[str]:
    """The options of the conversion that the manifest records, or that was begun: again, it makes the same shards."""
    manifest, begun = _manifest(layout), load_beginning(layout)
    if manifest is None:
        return list(begun.options) if begun else []
    try:
        return option_words(options_from(manifest))
    except InputError:
        return []
