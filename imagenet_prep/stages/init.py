"""init: a folder -> its layout, and a recipe that is ready to use, with a comment at each choice."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import NAME, escaped, quoted
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.columns import Content, column_name, usual
from imagenet_prep.recipes.inspection import inspect_folder
from imagenet_prep.recipes.labels import Classes, labels_in_words
from imagenet_prep.recipes.layouts import Proposal, choose_layout
from imagenet_prep.recipes.rules import SHARD_SIZE
from imagenet_prep.recipes.splits import ONLY, Shares
from imagenet_prep.sources.patterns import literal
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits that are proposed where a set has none of its own."""

FEWEST = 50
"""A smaller set is not split."""

_MOST_NAMED = 20  # tars that a recipe names one by one


def describe(proposal: Proposal) -> str:
    """What was found, in a line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[proposal.content]
    text = f"{len(proposal.names):,} {what}"
    if proposal.classes:
        text += f" in {len(proposal.classes):,} classes"
    if proposal.splits:
        text += f", in {' and '.join(proposal.splits.values())}"
    if proposal.archives:
        text += f", in {len(proposal.archives):,} tar{'s' if len(proposal.archives) > 1 else ''}"
    return text + (f", with {proposal.table.where}" if proposal.table else "")


def render_recipe(proposal: Proposal, folder: Path, recipe: Path) -> str:
    """The text of a recipe for a folder, to be written to ``recipe``."""
    where = _where(folder, recipe)
    use = f"{NAME} convert DATA_DIR --config {quoted(recipe.name)}"
    blocks = [
        f"# {escaped(describe(proposal))}.\n# To use it: {escaped(use)}",
        _render_source(proposal, where),
        *([_render_labels(proposal, where)] if proposal.table else []),
        f"content: {proposal.content}" + _CONTENT_NOTES[proposal.content],
        _render_splits(proposal, where),
        _render_shards(proposal, where),
        _render_record(proposal),
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


def _render_source(proposal: Proposal, where: str) -> str:
    if proposal.kind == "folders":
        note = "the splits, and in each a folder a class" if proposal.splits else "a folder a class"
        return f"source:\n  folders: {_quoted(_below(where, proposal.lead.rstrip('/')))}   # {note}"
    if proposal.kind == "tar":
        names = [literal(_below(where, name)) for name in proposal.archives]
        if len(names) > _MOST_NAMED:
            deep = any("/" in name for name in proposal.archives)
            names = [_below(literal(where), "**/*.tar" if deep else "*.tar")]
        each = "\n  tar_folders: true   # each tar is a class, named as the tar is" if proposal.tar_folders else ""
        return f"source:\n  tar: {_several(names)}   # read in place{each}".replace(":  ", ": ")
    return f"source:\n  files: {_several(_patterns(proposal, where))}"


def _several(texts: Sequence[str]) -> str:
    quoted = [_quoted(text) for text in texts]
    return quoted[0] if len(quoted) == 1 else "\n" + "\n".join(f"    - {text}" for text in quoted)


def _patterns(proposal: Proposal, where: str) -> list[str]:
    """The patterns that all files match, one for each ending."""
    endings = sorted({name.rpartition(".")[2] for name in proposal.names})
    deep = "**/" if any("/" in name for name in proposal.names) else ""
    return [_below(literal(where), f"{deep}*.{literal(ending)}") for ending in endings]


def _render_labels(proposal: Proposal, where: str) -> str:
    assert proposal.table is not None
    found, table = proposal.table, proposal.table.table
    name = _quoted(_below(where, found.where))
    words = {True: "true", False: "false"}
    more = [
        f"{key}: {words[value] if isinstance(value, bool) else _value(value)}" for key, value in found.options.items()
    ]
    columns = f", with the columns {escaped(', '.join(table.columns))}" if table.columns else ""
    value = f"{{file: {name}, {', '.join(more)}}}" if more else name
    text = f"labels: {value}   # {len(table.paths):,} lines{columns}"
    hint = "\n# all columns become features; `label: COLUMN` in `labels: {file: ...}` would make one of them the class"
    return text if found.has_labels else text + hint


def _value(text: str) -> str:
    """A text within braces, where a comma ends it."""
    return (
        _quoted(text)
        if re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII)
        else escaped(json.dumps(text, ensure_ascii=False))
    )


def _render_splits(proposal: Proposal, where: str) -> str:
    if proposal.splits and proposal.kind == "files":
        lead = "" if where.startswith("/") else literal(where)
        lines = [
            f"  {name}: {{files: {_quoted(_below(lead or '.', f'{literal(top)}/**/*'))}}}"
            for top, name in proposal.splits.items()
        ]
        return "\n".join(["splits:                     # by the folders", *lines])
    if proposal.splits:
        return f"# splits: the folders {', '.join(proposal.splits)} are recognised"
    if len(_sizes(proposal, where)) > 1:
        shares = "".join(f"\n  {name}: {share}" for name, share in SHARES.items())
        return f"splits:                     # by a hash of the name: files that come later move none{shares}"
    if min(_counts(proposal, where).values()):
        return "# splits: {train: 0.9, validation: 0.1}   # one split, train, as it is"
    return "# one split, train: there are too few files to divide"


def _counts(proposal: Proposal, where: str) -> dict[str, int]:
    """How many files each of the proposed splits would have: by the names that the recipe gives its files."""
    lead = f"{where}/" if proposal.kind == "files" and where != "." and not where.startswith("/") else ""
    shares = Shares(SHARES)
    return dict.fromkeys(SHARES, 0) | Counter(shares.split_of(lead + name) for name in proposal.names)


def _sizes(proposal: Proposal, where: str) -> dict[str, int]:
    """Bytes of each split: of the given ones, else of those proposed, or of one if there are few files."""
    total = sum(proposal.lengths)
    if proposal.splits:
        sizes = dict.fromkeys(proposal.splits.values(), 0)
        for name, length in zip(proposal.names, proposal.lengths, strict=True):
            sizes[proposal.splits[name.partition("/")[0]]] += length
        return sizes
    if len(proposal.names) < FEWEST or not min(_counts(proposal, where).values()):
        return {ONLY: total}
    return {name: round(total * share) for name, share in SHARES.items()}


def _render_shards(proposal: Proposal, where: str) -> str:
    sizes = _sizes(proposal, where)
    counts = {name: min(MAX_SHARDS, max(1, round(size / SHARD_SIZE))) for name, size in sizes.items()}
    if not proposal.splits and len(counts) == 1:
        return f"shards: {counts[ONLY]}                   # files of about 100 MB each, at least one"
    lines = [f"  {name}: {count}" for name, count in counts.items()]
    return "\n".join(["shards:                     # files of about 100 MB each, at least one", *lines])


def _render_record(proposal: Proposal) -> str:
    extra, numbers = _extra(proposal), _numbers(proposal)
    if _is_inception(proposal):
        labels = "labels count from 1"
        if numbers and proposal.table:
            name = escaped(Path(proposal.table.where).name)
            labels = f"labels are the numbers of {name}, {numbers[0]} to {numbers[-1]}"
        return f"record: inception           # the fifteen features of ImageNet's records; {labels}"
    wishes = usual(proposal.content, proposal.is_labelled, is_rescaled=False)
    lines = [f"  {_quoted(wish.feature)}: {wish.column}" for wish in wishes]
    lines += [f"  {_quoted(name)}: {{from: {_quoted(column_name(name))}, optional: true}}" for name in extra]
    return "\n".join(["record:                     # feature: column", *lines])


def _is_inception(proposal: Proposal) -> bool:
    """Whether records are of Inception's layout: those of images with labels that it has a place for."""
    is_plain = proposal.content == "image" and proposal.is_labelled and not _extra(proposal)
    return is_plain and min(_numbers(proposal), default=0) >= 0


def _extra(proposal: Proposal) -> list[str]:
    """The columns that become features: of labels that are no classes, that one too."""
    if proposal.table is None:
        return []
    table = proposal.table.table
    label = ["label"] if table.labels is not None and not proposal.table.has_labels else []
    return [*label, *table.columns]


def _numbers(proposal: Proposal) -> list[int]:
    """The labels of a file where they are numbers: records get those."""
    if proposal.table is None:
        return []
    return sorted({label for label in proposal.table.labels or () if isinstance(label, int)})


def _classes(proposal: Proposal) -> Classes:
    """The classes of the set, with the labels that records get."""
    names, first = tuple(proposal.classes or ()), int(_is_inception(proposal))
    numbers = _numbers(proposal) or range(first, first + len(names))
    return Classes(names, names, tuple(numbers))


@dataclass(frozen=True, slots=True)
class InitSummary:
    """What was proposed.

    Args:
        recipe: the file that was written.
        text: what is in it.
        found: what the folder holds, in words.
        layout: the layout that was recognised.
        evidence: what speaks for it.
        classes: how many files each class has, in the order of their labels.
        labels: the labels of the first classes and of the last one, in words; "" if there are none.
        passed: what is left out, and why, in words.
    """

    recipe: Path
    text: str
    found: str
    layout: str
    evidence: tuple[str, ...]
    classes: Mapping[str, int]
    labels: str
    passed: tuple[str, ...]


def init(
    folder: Path, output: Path | None, engine: Engine, *, layout: str | None = None, progress: Progress | None = None
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default to its own name with .yaml, in the current folder.

    Args:
        folder: the data.
        output: the recipe.
        engine: where files are listed.
        layout: the layout to read the folder by, where it can be read in two ways, or holds what would be left out.
        progress: told what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose something: every fault
            is named, with the choices.
        UsageError: the recipe is there already, the folder is a URL, or it doesn't have that layout.
    """
    refuse_url(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is {'no folder' if folder.exists() else 'not there'}", "expected a folder of data")
    target = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} is there already", "expected a new file", "name another one with --output")
    progress = progress or Silent()
    progress.note(f"looking at {folder}")
    choice = choose_layout(inspect_folder(folder, engine), layout)
    proposal = choice.proposal
    _refuse_far(proposal, folder, target)
    text = render_recipe(proposal, folder, target)
    with writing(target):
        save_bytes(target, text.encode())
    labels = labels_in_words(_classes(proposal)) if proposal.classes else ""
    passed = choice.description.passed
    return InitSummary(
        target, text, describe(proposal), choice.name, choice.evidence, proposal.classes or {}, labels, passed
    )


def _refuse_far(proposal: Proposal, folder: Path, target: Path) -> None:
    """Several patterns must be relative to the recipe: it can't lie outside of the folders above the data."""
    where = _where(folder, target)
    if proposal.kind == "files" and where.startswith("/") and len(_patterns(proposal, where)) > 1:
        hint = f"put it above the data: --output {folder.resolve().parent / target.name}"
        raise UsageError(
            f"{target} can't name files of several endings in {folder}", "expected a recipe above them", hint
        )
