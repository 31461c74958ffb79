"""What a folder holds -> the text of a recipe for it, with a comment at each choice."""

from __future__ import annotations

import json
import os
import posixpath
import re
from pathlib import Path

from imagenet_prep.escaping import NAME, escaped, quoted
from imagenet_prep.recipes.columns import Content, column_name, usual
from imagenet_prep.recipes.dividing import Shares
from imagenet_prep.recipes.looking import Look
from imagenet_prep.recipes.rules import SHARD_SIZE
from imagenet_prep.sources.patterns import literal
from imagenet_prep.storage.layout import MAX_SHARDS

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits that are proposed where a set has none of its own."""

FEWEST = 50
"""A smaller set is not split."""


def in_words(look: Look) -> str:
    """What was found, in a line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[look.content]
    text = f"{len(look.names):,} {what}"
    if look.classes:
        text += f" in {len(look.classes):,} classes"
    if look.splits:
        text += f", in {' and '.join(look.splits.values())}"
    if look.archives:
        text += f", in {len(look.archives):,} tar{'s' if len(look.archives) > 1 else ''}"
    return text + (f", with {look.table.where}" if look.table else "")


def render(look: Look, folder: Path, recipe: Path) -> str:
    """The text of a recipe for a folder, to be written to ``recipe``."""
    where = _where(folder, recipe)
    use = f"{NAME} convert DATA_DIR --config {quoted(recipe.name)}"
    blocks = [
        f"# {escaped(in_words(look))}.\n# To use it: {escaped(use)}",
        _render_source(look, where),
        *([_render_labels(look, where)] if look.table else []),
        f"content: {look.content}" + _CONTENT_NOTES[look.content],
        _render_splits(look),
        _render_shards(look),
        _render_record(look),
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


def _render_source(look: Look, where: str) -> str:
    if look.kind == "folders":
        note = "the splits, and in each a folder a class" if look.splits else "a folder a class"
        return f"source:\n  folders: {_quoted(_below(where, look.lead.rstrip('/')))}   # {note}"
    if look.kind == "tar":
        names = [_quoted(literal(_below(where, name))) for name in look.archives]
        text = names[0] if len(names) == 1 else "\n" + "\n".join(f"    - {name}" for name in names)
        return f"source:\n  tar: {text}   # read in place".replace(":  ", ": ")
    endings = sorted({name.rpartition(".")[2] for name in look.names})
    deep = "**/" if any("/" in name for name in look.names) else ""
    patterns = [_quoted(_below(literal(where), f"{deep}*.{literal(ending)}")) for ending in endings]
    text = patterns[0] if len(patterns) == 1 else "\n" + "\n".join(f"    - {pattern}" for pattern in patterns)
    return f"source:\n  files: {text}"


def _render_labels(look: Look, where: str) -> str:
    assert look.table is not None
    found, table = look.table, look.table.table
    name = _quoted(_below(where, found.where))
    more = [] if found.path is None else [f"path: {_quoted(found.path)}"]
    if table.labels is not None and not found.has_labels:
        more.append("label: false")
    columns = f", with the columns {escaped(', '.join(table.columns))}" if table.columns else ""
    value = f"{{file: {name}, {', '.join(more)}}}" if more else name
    text = f"labels: {value}   # {len(table.paths):,} lines{columns}"
    hint = "\n# all columns become features; `label: COLUMN` in `labels: {file: ...}` would make one of them the class"
    return text if found.has_labels else text + hint


def _render_splits(look: Look) -> str:
    if look.splits:
        return f"# splits: the folders {', '.join(look.splits)} are recognised"
    if len(_sizes(look)) == 1:
        return "# splits: {train: 0.9, validation: 0.1}   # one split, train, as it is"
    shares = "".join(f"\n  {name}: {share}" for name, share in SHARES.items())
    return f"splits:                     # by a hash of the name: files that come later move none{shares}"


def _sizes(look: Look) -> dict[str, int]:
    """Bytes of each split: of the given ones, else of those proposed, or of one if none of these may be empty.

    Names as the recipe's source gives them hash alike only in folders and tars: the fractions tell as much.
    """
    split_of = (lambda name: look.splits[name.partition("/")[0]]) if look.splits else Shares(SHARES).split_of
    sizes = dict.fromkeys(look.splits.values() if look.splits else SHARES, 0)
    counts = dict(sizes)
    for name, length in zip(look.names, look.lengths, strict=True):
        sizes[split_of(name)] += length
        counts[split_of(name)] += 1
    if look.splits:
        return sizes
    total = sum(sizes.values())
    is_small = len(look.names) < FEWEST or min(counts.values()) == 0
    return {"train": total} if is_small else {name: round(total * share) for name, share in SHARES.items()}


def _render_shards(look: Look) -> str:
    counts = {name: min(MAX_SHARDS, max(1, round(size / SHARD_SIZE))) for name, size in _sizes(look).items()}
    lines = [f"  {name}: {count}" for name, count in counts.items()]
    return "\n".join(["shards:                     # files of about 100 MB each, at least one", *lines])


def _render_record(look: Look) -> str:
    extra = _extra(look)
    numbers = _numbers(look)
    if look.content == "image" and look.is_labelled and not extra and min(numbers, default=0) >= 0:
        labels = "labels count from 1"
        if numbers and look.table:
            labels = (
                f"labels are the numbers of {escaped(Path(look.table.where).name)}, {min(numbers)} to {max(numbers)}"
            )
        return f"record: inception           # the fifteen features of ImageNet's records; {labels}"
    wishes = usual(look.content, look.is_labelled, is_rescaled=False)
    lines = [f"  {_quoted(wish.feature)}: {wish.column}" for wish in wishes]
    lines += [f"  {_quoted(name)}: {{from: {_quoted(column_name(name))}, optional: true}}" for name in extra]
    return "\n".join(["record:                     # feature: column", *lines])


def _extra(look: Look) -> list[str]:
    """The columns that become features: of labels that are no classes, that one too."""
    if look.table is None:
        return []
    table = look.table.table
    label = ["label"] if table.labels is not None and not look.table.has_labels else []
    return [*label, *table.columns]


def _numbers(look: Look) -> list[int]:
    """The labels of a file where they are numbers: records get those."""
    if look.table is None:
        return []
    return [label for label in set(look.table.labels or ()) if isinstance(label, int)]
