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
from imagenet_prep.errors import InputError, PrepError
from imagenet_prep.layout import Layout, parse_shard_name
from imagenet_prep.manifest import Journal, Manifest, load_manifest
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
    """How far each stage has come; reads no archive and no shard. A recipe's data set has only the last two."""
    recipe = _find_recipe(layout)
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
    what = "a part of ILSVRC2012" if verdict.is_part else verdict.dataset
    return StageStatus("verify", "done", f"{what}, whole and right")


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not begun"


def _count(folder: Path, suffix: str) -> int:
    return sum(name.endswith(suffix) for name in os.listdir(folder)) if folder.is_dir() else 0


# the data set of a recipe --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Recipe:
    """A data set made by a recipe: its manifest, once it is whole, and the recipe's place, as far as it is known."""

    manifest: Manifest | None
    path: Path | None


def _find_recipe(layout: Layout) -> _Recipe | None:
    """What tells that the shards are a recipe's; None if they are ILSVRC2012, or nothing is known of them."""
    try:
        kept = load_json(layout.recipe_path)
    except InputError:
        kept = None
    path = kept.get("recipe") if isinstance(kept, dict) else None
    recipe = _Recipe(_manifest(layout), Path(path) if isinstance(path, str) else None)
    if recipe.manifest is not None:
        return recipe if recipe.manifest.recipe is not None else None
    return recipe if recipe.path is not None else None


def _recipe_status(layout: Layout, recipe: _Recipe) -> Status:
    if recipe.manifest is not None:
        convert, verify = _convert(layout), _verify(layout)
    else:
        convert = StageStatus("convert", "partly", _under_way(layout))
        verify = StageStatus("verify", "not begun", "the conversion has not come to its end")
    if verify.state == "done":
        command = _command("report", layout.output_dir)
    elif recipe.manifest is None:
        command = _convert_command(layout, recipe.path)
    elif verify.state == "problems" or convert.state != "done":
        command = _command("repair", layout.data_dir, *_options(layout))
    else:
        command = _command("verify", layout.output_dir)
    return Status((convert, verify), command)


def _under_way(layout: Layout) -> str:
    """What the journal tells of a conversion under way: which shards stand, and of how many by their names."""
    recorded, _ = _recorded(layout)
    parsed = {name: found for name in recorded if (found := parse_shard_name(name))}
    sizes = layout.find_shards({split for split, _, _ in parsed.values()})
    done = Counter(parsed[name][::2] for name in sorted(parsed) if sizes.get(name) == recorded[name])
    words = (f"{split}: {count:,} of {_number(planned, 'shard')}" for (split, planned), count in done.items())
    return "; ".join(words) or "begun, no shard is done yet"


def _convert_command(layout: Layout, recipe: Path | None) -> str:
    """The same conversion again. A folder in the recipe's prefix is part of where the shards are: it is not given."""
    from imagenet_prep.recipes.plan import read
    from imagenet_prep.recipes.rules import prefix_of

    assert recipe is not None
    try:
        folder, _ = prefix_of(read(recipe))
    except PrepError:
        folder = ""  # convert says what is wrong with it
    raw = ("--raw", str(layout.raw)) if layout.raw else ()
    output = ("--output", str(_outside(layout.output, folder))) if layout.output else ()
    data_dir = layout.data_dir if layout.output else _outside(layout.data_dir, folder)
    return _command("convert", data_dir, *raw, *output, "--config", str(recipe))


def _outside(path: Path, folder: str) -> Path:
    """The path without the folder that it ends with."""
    parts = Path(folder).parts
    for each in (path, path.resolve()):
        if parts and each.parts[-len(parts) :] == parts:
            return each.parents[len(parts) - 1]
    return path


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
