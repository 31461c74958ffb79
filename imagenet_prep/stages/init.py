"""Inspects a folder and writes a recipe for its layout, with a comment at each choice."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import NAME, escaped, quoted
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.columns import OF_CLASS, OF_CLASSES, Content, becoming_jpeg, column_name, is_of, usual
from imagenet_prep.recipes.inspection import inspect_folder
from imagenet_prep.recipes.labels import Classes, labels_in_words
from imagenet_prep.recipes.labels_file import flat_labels
from imagenet_prep.recipes.layouts import Proposal, choose_layout
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.rules import SHARD_SIZE
from imagenet_prep.recipes.splits import ONLY, Shares
from imagenet_prep.sources.patterns import literal
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits proposed for a set without splits."""

FEWEST = 50
"""The smallest set that is split."""

_MOST_NAMED = 20  # tars that a recipe lists one by one


def describe(proposal: Proposal) -> str:
    """The findings as one line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[proposal.content]
    text = f"{len(proposal.names):,} {what}"
    if proposal.classes:
        text += f" in {len(proposal.classes):,} classes"
    if named := [*(proposal.splits or {}).values(), *proposal.lists]:
        text += f", in {' and '.join(named)}"
    if proposal.archives:
        text += f", in {len(proposal.archives):,} tar{'s' if len(proposal.archives) > 1 else ''}"
    return text + (f", with {proposal.table.where}" if proposal.table else "")


def render_recipe(proposal: Proposal, folder: Path, recipe: Path) -> str:
    """The text of a recipe for a folder, for the file ``recipe``."""
    where = _where(folder, recipe)
    use = f"{NAME} convert DATA_DIR --config {quoted(recipe.name)}"
    place = _below(where, proposal.lead.rstrip("/")) if proposal.kind == "files" else where
    blocks = [
        f"# {escaped(describe(proposal))}.\n# To use it: {escaped(use)}",
        _render_source(proposal, where),
        *([_render_labels(proposal, where)] if proposal.table and not proposal.paths else []),
        *_render_annotations(proposal, where),
        f"content: {proposal.content}" + _CONTENT_NOTES[proposal.content] + _render_changes(proposal),
        _render_splits(proposal, place, where),
        _render_shards(proposal, place),
        _render_record(proposal),
        "compression: none           # or gzip, zlib",
        "shuffle: true               # the same order every time\nseed: 12345",
    ]
    return "\n\n".join(blocks) + "\n"


_CONTENT_NOTES: dict[Content, str] = {
    "image": "              # images are kept as they are; `resize: 256` makes them smaller",
    "pixels": "             # images are decoded to numbers; min_val and max_val would rescale them to [0, 1]",
    "array": "              # min_val and max_val would rescale them to [0, 1]",
}


def _render_changes(proposal: Proposal) -> str:
    """The comment on images that become JPEGs."""
    found = becoming_jpeg(proposal.names, _is_inception(proposal)) if proposal.content == "image" else {}
    said = ", ".join(f"{count:,} {escaped(ending)}" for ending, count in found.items())
    return f"\n# {said} become JPEGs; keep: true and a mapping of features in record keep their bytes" if found else ""


def _where(folder: Path, recipe: Path) -> str:
    """The folder as written in the recipe: relative if it is below the recipe, otherwise absolute."""
    full, base = folder.resolve(), recipe.parent.resolve()
    if full.is_relative_to(base) and "DATAPATH" not in os.environ:
        return full.relative_to(base).as_posix()
    return full.as_posix()


def _quoted(text: str) -> str:
    """A text as YAML; JSON strings, with JSON's escapes, are YAML."""
    is_plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text, re.ASCII) and text.lower() not in ("true", "false", "null")
    return text if is_plain else escaped(json.dumps(text, ensure_ascii=False))


def _below(where: str, name: str) -> str:
    return posixpath.normpath(name if where == "." else f"{where.rstrip('/')}/{name}") if name else where


def _render_source(proposal: Proposal, where: str) -> str:
    if proposal.kind == "folders":
        note = "the splits, each with a folder per class" if proposal.splits else "a folder per class"
        more = "".join(f"\n  {key}: {value}" for key, value in proposal.options.items())
        return f"source:\n  folders: {_quoted(_below(where, proposal.lead.rstrip('/')))}   # {note}{more}"
    if proposal.kind == "tar":
        names = [literal(_below(where, name)) for name in proposal.archives]
        if len(names) > _MOST_NAMED:
            deep = any("/" in name for name in proposal.archives)
            names = [_below(literal(where), "**/*.tar" if deep else "*.tar")]
        each = "\n  tar_folders: true   # each tar is a class with the tar's name" if proposal.tar_folders else ""
        return f"source:\n  tar: {_several(names)}   # read in place{each}".replace(":  ", ": ")
    if proposal.paths:
        return _render_samples(proposal, where)
    return f"source:\n  files: {_several(_patterns(proposal, _below(where, proposal.lead.rstrip('/'))))}"


def _render_samples(proposal: Proposal, where: str) -> str:
    """A source with labels of its own, by split if its files are."""
    said = {split: _few(names, where) for split, names in (proposal.paths or {}).items()}
    if "" in said:
        lines = [f"  {proposal.kind}: {_several(said[''])}   # read in place"]
    else:
        lines = [f"  {proposal.kind}:   # read in place"]
        lines += [f"    {name}: {_several(texts).replace('    - ', '      - ')}" for name, texts in said.items()]
    more = [f"  {key}: {str(value).lower()}" for key, value in proposal.options.items()]
    return "\n".join(["source:", *lines, *more])


def _few(names: Sequence[str], where: str) -> list[str]:
    """The names, or patterns that match them if they are many."""
    if len(names) <= _MOST_NAMED:
        return [literal(_below(where, name)) for name in names]
    return sorted({_below(literal(where), re.sub(r"\d+", "*", name)) for name in names})


def _several(texts: Sequence[str]) -> str:
    quoted = [_quoted(text) for text in texts]
    return quoted[0] if len(quoted) == 1 else "\n" + "\n".join(f"    - {text}" for text in quoted)


def _patterns(proposal: Proposal, where: str) -> list[str]:
    """The patterns that match all files, one per file extension; names without one give theirs, with any digits."""
    deep = "**/" if any("/" in name for name in proposal.names) else ""
    endings, others = set(), set()
    for name in proposal.names:
        if is_of(proposal.content, name):
            endings.add(f"*.{literal(name.rpartition('.')[2])}")
        else:
            others.add(re.sub(r"\d+", "[0-9]*", literal(name.rpartition("/")[2])))
    patterns = ["*"] if len(others) > _MOST_NAMED else sorted(endings | others)
    return [_below(literal(where), deep + pattern) for pattern in patterns]


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
    hint = "\n# all columns become features; `label: COLUMN` in `labels: {file: ...}` makes one of them the class"
    return text if found.has_labels else text + hint


def _render_annotations(proposal: Proposal, where: str) -> Iterator[str]:
    for key, value in proposal.annotations.items():
        lines = []
        for name, each in value.items():
            texts = [each] if isinstance(each, str) else each
            if name in ("coco", "voc", "yolo", "captions", "names", "folder"):
                texts = [_below(where, text) for text in texts]
            shown = ", ".join(_value(text) for text in texts)
            lines.append(f"  {name}: {shown if len(texts) == 1 else f'[{shown}]'}")
        yield "\n".join([f"{key}:", *lines])


def _value(text: str) -> str:
    """A text for use within braces, where a comma would end it."""
    return (
        _quoted(text)
        if re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII)
        else escaped(json.dumps(text, ensure_ascii=False))
    )


def _render_splits(proposal: Proposal, where: str, folder: str) -> str:
    if proposal.lists:
        lists = {name: _value(_below(folder, path)) for name, (path, _) in proposal.lists.items()}
        lines = [f"  {name}: {{manifest: {path}}}" for name, path in lists.items()]
        return "\n".join(["splits:                     # by lists of names", *lines])
    if proposal.splits and proposal.kind == "files":
        lead = "" if where.startswith("/") else literal(where)
        lines = [
            f"  {name}: {{files: {_quoted(_below(lead or '.', f'{literal(top)}/**/*'))}}}"
            for top, name in proposal.splits.items()
        ]
        return "\n".join(["splits:                     # by the folders", *lines])
    if proposal.splits and proposal.paths:
        return f"# splits: {', '.join(proposal.splits)}, as the source says"
    if proposal.splits:
        return f"# splits: the folders {', '.join(proposal.splits)} are recognised"
    if len(_sizes(proposal, where)) > 1:
        shares = "".join(f"\n  {name}: {share}" for name, share in SHARES.items())
        return f"splits:                     # by a hash of the name, so that new files move no old ones{shares}"
    if min(_counts(proposal, where).values()):
        return "# splits: {train: 0.9, validation: 0.1}   # one split, train, as it is"
    return "# one split, train: too few files to split"


def _counts(proposal: Proposal, where: str) -> dict[str, int]:
    """The number of files in each proposed split, by the names that the recipe gives its files."""
    lead = f"{where}/" if proposal.kind == "files" and where != "." and not where.startswith("/") else ""
    shares = Shares(SHARES)
    return dict.fromkeys(SHARES, 0) | Counter(shares.split_of(lead + name) for name in proposal.names)


def _sizes(proposal: Proposal, where: str) -> dict[str, int]:
    """Bytes of each split: of existing splits, otherwise of the proposed splits, or of one if there are few files."""
    total = sum(proposal.lengths)
    if proposal.lists:
        return {name: length for name, (_, length) in proposal.lists.items()}
    if proposal.splits:
        sizes = dict.fromkeys(proposal.splits.values(), 0)
        for name, length in zip(proposal.names, proposal.lengths, strict=True):
            sizes[next(split for top, split in proposal.splits.items() if name.startswith(f"{top}/"))] += length
        return sizes
    if len(proposal.names) < FEWEST or not min(_counts(proposal, where).values()):
        return {ONLY: total}
    return {name: round(total * share) for name, share in SHARES.items()}


def _render_shards(proposal: Proposal, where: str) -> str:
    sizes = _sizes(proposal, where)
    counts = {name: min(MAX_SHARDS, max(1, round(size / SHARD_SIZE))) for name, size in sizes.items()}
    if not proposal.splits and not proposal.lists and len(counts) == 1:
        return f"shards: {counts[ONLY]}                   # files of about 100 MB each, at least one"
    lines = [f"  {name}: {count}" for name, count in counts.items()]
    return "\n".join(["shards:                     # files of about 100 MB each, at least one", *lines])


def _render_record(proposal: Proposal) -> str:
    if proposal.annotations:
        return "# record: the features of TensorFlow's Object Detection API and DeepLab; a mapping chooses others"
    extra, numbers = _extra(proposal), _numbers(proposal)
    if _is_inception(proposal):
        labels = "labels count from 1"
        if numbers and proposal.table:
            name = escaped(Path(proposal.table.where).name)
            labels = f"labels are the numbers of {name}, {numbers[0]} to {numbers[-1]}"
        return f"record: inception           # the fifteen features of ImageNet's records; {labels}"
    of_class = OF_CLASSES if proposal.is_several else OF_CLASS if proposal.classes else {}
    wishes = usual(proposal.content, of_class, is_rescaled=False)
    wishes = [wish for wish in wishes if wish.column.partition(".")[0] != "text" or wish.feature not in extra]
    lines = [f"  {_quoted(wish.feature)}: {wish.column}" for wish in wishes]
    lines += [f"  {_quoted(name)}: {{from: {_quoted(column_name(name))}, optional: true}}" for name in extra]
    return "\n".join(["record:                     # feature: column", *lines])


def _is_inception(proposal: Proposal) -> bool:
    """Whether records follow Inception's layout: images with labels that fit in it."""
    is_plain = proposal.content == "image" and bool(proposal.classes) and not _extra(proposal)
    is_plain = is_plain and not proposal.is_several
    return is_plain and proposal.kind != "arrays" and min(_numbers(proposal), default=0) >= 0


def _extra(proposal: Proposal) -> list[str]:
    """The columns that become features, including labels that are not classes."""
    if proposal.table is None:
        return []
    table = proposal.table.table
    label = ["label"] if table.labels is not None and not proposal.table.has_labels else []
    return [*label, *table.columns]


def _numbers(proposal: Proposal) -> list[int]:
    """The numeric labels of a file: records get these numbers."""
    if proposal.table is None:
        return []
    return sorted({label for label in flat_labels(proposal.table.labels or ()) if isinstance(label, int)})


def _classes(proposal: Proposal) -> Classes:
    """The classes of the set, with their labels in records."""
    names, first = tuple(proposal.classes or ()), int(_is_inception(proposal))
    numbers = _numbers(proposal) or range(first, first + len(names))
    return Classes(names, names, tuple(numbers))


@dataclass(frozen=True, slots=True)
class InitSummary:
    """The proposed recipe.

    Args:
        recipe: the file that was written.
        text: its content.
        found: what the folder holds, as text.
        layout: the recognised layout.
        evidence: the reasons for the layout.
        classes: the number of files per class, in the order of their labels.
        labels: the labels of the first classes and of the last one, as text; "" if there are none.
        passed: what is skipped, and why, as text.
        warnings: the classes that a split lacks, as text.
    """

    recipe: Path
    text: str
    found: str
    layout: str
    evidence: tuple[str, ...]
    classes: Mapping[str, int]
    labels: str
    passed: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def init(
    folder: Path, output: Path | None, engine: Engine, *, layout: str | None = None, progress: Progress | None = None
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default named like the folder, with .yaml, in the current folder.

    Args:
        folder: the data.
        output: the recipe.
        engine: lists files.
        layout: the layout to use if the folder has several possible ones, or files that would be skipped.
        progress: reports what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose something; the error
            lists every fault, with the choices.
        UsageError: the recipe already exists, the folder is a URL, or it does not have that layout.
    """
    refuse_url(folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"{folder} {what}", "expected a folder of data")
    target = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} already exists", "expected a new file", "choose another name with --output")
    progress = progress or Silent()
    progress.note(f"inspecting {folder}")
    choice = choose_layout(inspect_folder(folder, engine), layout)
    proposal = choice.proposal
    _refuse_far(proposal, folder, target)
    text = render_recipe(proposal, folder, target)
    with writing(target):
        save_bytes(target, text.encode())
    own = _classes(proposal)
    labels = labels_in_words(own.names, own.numbers) if proposal.classes else ""
    passed = choice.passed
    warnings = _check_recipe(proposal, target, engine, is_divided=len(_sizes(proposal, _where(folder, target))) > 1)
    found, classes = describe(proposal), proposal.classes or {}
    return InitSummary(target, text, found, choice.name, choice.evidence, classes, labels, passed, warnings)


def _check_recipe(proposal: Proposal, recipe: Path, engine: Engine, *, is_divided: bool) -> tuple[str, ...]:
    """The warnings of the new recipe; it is removed if it doesn't take every file of a folder.

    Raises:
        InputError: it takes more or fewer files, or none.
    """
    is_folder = proposal.kind in ("files", "folders")
    has_warnings = bool(proposal.classes) and is_divided
    if not is_folder and not has_warnings:
        return ()
    try:
        dataset = load(recipe, None, engine)
        taken = sum(len(split.catalog) for split in dataset.splits)
        if is_folder and taken != len(proposal.names):
            what = f"{recipe} would take {taken:,} files, and {len(proposal.names):,} were found: it is not kept"
            raise InputError(what, "expected all of them", "write a recipe whose `source` names them")
    except PrepError:
        if is_folder:
            recipe.unlink()
            raise
        return ()  # convert names the line
    return dataset.warnings if has_warnings else ()


def _refuse_far(proposal: Proposal, folder: Path, target: Path) -> None:
    """Refuse a recipe outside the folders above the data if it needs several patterns: they must be relative to it."""
    where = _where(folder, target)
    if proposal.kind == "files" and where.startswith("/") and len(_patterns(proposal, where)) > 1:
        hint = f"put it above the data: --output {folder.resolve().parent / target.name}"
        raise UsageError(
            f"{target} can't list files with several extensions in {folder}", "expected a recipe above them", hint
        )
