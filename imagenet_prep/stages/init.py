"""A look at a folder -> a recipe that is ready to use, with a comment at each choice."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import NAME, escaped, quoted
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.columns import Content, column_name, usual
from imagenet_prep.recipes.rules import SHARD_SIZE
from imagenet_prep.recipes.splits import Shares
from imagenet_prep.recipes.survey import Survey, survey_folder
from imagenet_prep.sources.patterns import literal
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits that are proposed where a set has none of its own."""

FEWEST = 50
"""A smaller set is not split."""


def describe(survey: Survey) -> str:
    """What was found, in a line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[survey.content]
    text = f"{len(survey.names):,} {what}"
    if survey.classes:
        text += f" in {len(survey.classes):,} classes"
    if survey.splits:
        text += f", in {' and '.join(survey.splits.values())}"
    if survey.archives:
        text += f", in {len(survey.archives):,} tar{'s' if len(survey.archives) > 1 else ''}"
    return text + (f", with {survey.table.where}" if survey.table else "")


def render_recipe(survey: Survey, folder: Path, recipe: Path) -> str:
    """The text of a recipe for a folder, to be written to ``recipe``."""
    where = _where(folder, recipe)
    use = f"{NAME} convert DATA_DIR --config {quoted(recipe.name)}"
    blocks = [
        f"# {escaped(describe(survey))}.\n# To use it: {escaped(use)}",
        _render_source(survey, where),
        *([_render_labels(survey, where)] if survey.table else []),
        f"content: {survey.content}" + _CONTENT_NOTES[survey.content],
        _render_splits(survey),
        _render_shards(survey),
        _render_record(survey),
        "compression: none           # or gzip, zlib",
        "shuffle: true               # the same order every time\nseed: 12345",
    ]
    return "\n\n".join(blocks) + "\n"


_CONTENT_NOTES: dict[Content, str] = {
    "image": "              # images are kept as they are; `images: {resize: 256}` makes them smaller",
    "pixels": "             # images are decoded to numbers; min_val and max_val would rescale them to [0, 1]",
    "array": "              # min_val and max_val would rescale them to [0, 1]",
}


def _where(folder: Path, recipe: Path) -> str:
    """The folder as the recipe names it: from the recipe if it lies below it, else in full."""
    full, base = folder.resolve(), recipe.parent.resolve()
    if full.is_relative_to(base) and "DATAPATH" not in os.environ:
        return full.relative_to(base).as_posix()
    return full.as_posix()


def _quoted(text: str) -> str:
    """A text as YAML; JSON's strings are YAML's, and so is what JSON leaves to be escaped."""
    is_plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text, re.ASCII) and text.lower() not in ("true", "false", "null")
    return text if is_plain else escaped(json.dumps(text, ensure_ascii=False))


def _below(where: str, name: str) -> str:
    return posixpath.normpath(name if where == "." else f"{where.rstrip('/')}/{name}") if name else where


def _render_source(survey: Survey, where: str) -> str:
    if survey.kind == "folders":
        note = "the splits, and in each a folder a class" if survey.splits else "a folder a class"
        return f"source:\n  folders: {_quoted(_below(where, survey.lead.rstrip('/')))}   # {note}"
    if survey.kind == "tar":
        names = [_quoted(literal(_below(where, name))) for name in survey.archives]
        text = names[0] if len(names) == 1 else "\n" + "\n".join(f"    - {name}" for name in names)
        return f"source:\n  tar: {text}   # read in place".replace(":  ", ": ")
    endings = sorted({name.rpartition(".")[2] for name in survey.names})
    deep = "**/" if any("/" in name for name in survey.names) else ""
    patterns = [_quoted(_below(literal(where), f"{deep}*.{literal(ending)}")) for ending in endings]
    text = patterns[0] if len(patterns) == 1 else "\n" + "\n".join(f"    - {pattern}" for pattern in patterns)
    return f"source:\n  files: {text}"


def _render_labels(survey: Survey, where: str) -> str:
    assert survey.table is not None
    found, table = survey.table, survey.table.table
    name = _quoted(_below(where, found.where))
    more = [] if found.path is None else [f"path: {_quoted(found.path)}"]
    if table.labels is not None and not found.has_labels:
        more.append("label: false")
    columns = f", with the columns {escaped(', '.join(table.columns))}" if table.columns else ""
    value = f"{{file: {name}, {', '.join(more)}}}" if more else name
    text = f"labels: {value}   # {len(table.paths):,} lines{columns}"
    hint = "\n# all columns become features; `label: COLUMN` in `labels: {file: ...}` would make one of them the class"
    return text if found.has_labels else text + hint


def _render_splits(survey: Survey) -> str:
    if survey.splits:
        return f"# splits: the folders {', '.join(survey.splits)} are recognised"
    if len(_sizes(survey)) == 1:
        return "# splits: {train: 0.9, validation: 0.1}   # one split, train, as it is"
    shares = "".join(f"\n  {name}: {share}" for name, share in SHARES.items())
    return f"splits:                     # by a hash of the name: files that come later move none{shares}"


def _sizes(survey: Survey) -> dict[str, int]:
    """Bytes of each split: of the given ones, else of those proposed, or of one if none of these may be empty.

    Names as the recipe's source gives them hash alike only in folders and tars: the fractions tell as much.
    """
    split_of = (lambda name: survey.splits[name.partition("/")[0]]) if survey.splits else Shares(SHARES).split_of
    sizes = dict.fromkeys(survey.splits.values() if survey.splits else SHARES, 0)
    counts = dict(sizes)
    for name, length in zip(survey.names, survey.lengths, strict=True):
        sizes[split_of(name)] += length
        counts[split_of(name)] += 1
    if survey.splits:
        return sizes
    total = sum(sizes.values())
    is_small = len(survey.names) < FEWEST or min(counts.values()) == 0
    return {"train": total} if is_small else {name: round(total * share) for name, share in SHARES.items()}


def _render_shards(survey: Survey) -> str:
    counts = {name: min(MAX_SHARDS, max(1, round(size / SHARD_SIZE))) for name, size in _sizes(survey).items()}
    lines = [f"  {name}: {count}" for name, count in counts.items()]
    return "\n".join(["shards:                     # files of about 100 MB each, at least one", *lines])


def _render_record(survey: Survey) -> str:
    extra = _extra(survey)
    numbers = _numbers(survey)
    if survey.content == "image" and survey.is_labelled and not extra and min(numbers, default=0) >= 0:
        labels = "labels count from 1"
        if numbers and survey.table:
            labels = (
                f"labels are the numbers of {escaped(Path(survey.table.where).name)}, {min(numbers)} to {max(numbers)}"
            )
        return f"record: inception           # the fifteen features of ImageNet's records; {labels}"
    wishes = usual(survey.content, survey.is_labelled, is_rescaled=False)
    lines = [f"  {_quoted(wish.feature)}: {wish.column}" for wish in wishes]
    lines += [f"  {_quoted(name)}: {{from: {_quoted(column_name(name))}, optional: true}}" for name in extra]
    return "\n".join(["record:                     # feature: column", *lines])


def _extra(survey: Survey) -> list[str]:
    """The columns that become features: of labels that are no classes, that one too."""
    if survey.table is None:
        return []
    table = survey.table.table
    label = ["label"] if table.labels is not None and not survey.table.has_labels else []
    return [*label, *table.columns]


def _numbers(survey: Survey) -> list[int]:
    """The labels of a file where they are numbers: records get those."""
    if survey.table is None:
        return []
    return [label for label in set(survey.table.labels or ()) if isinstance(label, int)]


@dataclass(frozen=True, slots=True)
class InitSummary:
    """What was proposed.

    Args:
        recipe: the file that was written.
        text: what is in it.
        found: what the folder holds, in words.
        classes: how many files each class has.
        passed: what was passed over, and why, in words.
    """

    recipe: Path
    text: str
    found: str
    classes: Mapping[str, int]
    passed: tuple[str, ...]


def init(folder: Path, output: Path | None, engine: Engine, *, progress: Progress | None = None) -> InitSummary:
    """Survey at a folder and write a recipe for it; by default to its own name with .yaml, in the current folder.

    Raises:
        InputError: there is nothing in the folder that a recipe could be made of, or something that it would misread;
            every obstacle is named, with the choices there are.
        UsageError: the recipe is there already, or the folder is a URL.
    """
    refuse_url(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is {'no folder' if folder.exists() else 'not there'}", "expected a folder of data")
    target = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} is there already", "expected a new file", "name another one with --output")
    progress = progress or Silent()
    progress.note(f"looking at {folder}")
    survey = survey_folder(folder, engine)
    text = render_recipe(survey, folder, target)
    with writing(target):
        save_bytes(target, text.encode())
    return InitSummary(target, text, describe(survey), survey.classes or {}, survey.passed)
