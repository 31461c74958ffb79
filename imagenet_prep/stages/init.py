"""A look at a folder -> a recipe that is ready to use, with a comment at each choice."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import escaped, quoted
from imagenet_prep.formats.labels_file import LabelsFault, LabelTable, form_of, parse_labels
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.columns import Content, column_name, usual
from imagenet_prep.recipes.contents import is_of
from imagenet_prep.recipes.dividing import FOLDERS
from imagenet_prep.recipes.rules import MAX_SHARDS, SHARD_SIZE
from imagenet_prep.recipes.splitting import Shares
from imagenet_prep.sources.class_folders import list_folder
from imagenet_prep.sources.listing import Listing
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.storage import save_bytes, writing

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits that are proposed where a set has none of its own."""

FEWEST = 50
"""A smaller set is not split."""

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
_LARGEST_TABLE = 1 << 28


@dataclass(frozen=True, slots=True)
class InitSummary:
    """What was proposed: the recipe that was written, its text, and what was found, in words."""

    recipe: Path
    text: str
    found: str


@dataclass(frozen=True, slots=True)
class _Look:
    """What a folder holds.

    ``kind`` is how the recipe names it; ``names`` are the files that count, with their ``lengths``; ``splits`` the
    given ones, by folder; ``table`` a file of labels, with its path from the folder.
    """

    kind: str
    content: Content
    names: Sequence[str]
    lengths: Sequence[int]
    archives: Sequence[str] = ()
    splits: Mapping[str, str] | None = None
    classes: int = 0
    table: tuple[str, LabelTable] | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether the files have classes."""
        return self.classes > 0 or (self.table is not None and self.table[1].labels is not None)


def init(folder: Path, output: Path | None, engine: Engine, *, progress: Progress | None = None) -> InitSummary:
    """Look at a folder and write a recipe for it; by default to its own name with .yaml, in the current folder.

    Raises:
        InputError: there is nothing in the folder that a recipe could be made of.
        UsageError: the recipe is there already.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is {'no folder' if folder.exists() else 'not there'}", "expected a folder of data")
    recipe = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if recipe.exists():
        raise UsageError(f"{recipe} is there already", "expected a new file", "name another one with --output")
    (progress or Silent()).note(f"looking at {folder}")
    look = _look_at(folder, engine)
    text = _render(look, folder, recipe)
    with writing(recipe):
        save_bytes(recipe, text.encode())
    return InitSummary(recipe, text, _in_words(look))


# looking -------------------------------------------------------------------------------------------------------


def _look_at(folder: Path, engine: Engine) -> _Look:
    listing = list_folder(folder, engine)
    content = _main_content(listing)
    archives = [name for name in listing.names if name.lower().endswith(".tar") and "/" not in name]
    if content is None and archives:
        inside = list_tars([folder / name for name in archives], engine, folder_each=False)
        content = _main_content(inside)
        if content is not None:
            return _look_in("tar", inside, content, archives)
    if content is None:
        found = Counter(Path(name).suffix.lower() or name for name in listing.names).most_common(5)
        raise InputError(
            f"{folder} holds nothing to make records of",
            "expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; found "
            + (", ".join(f"{count:,} {suffix}" for suffix, count in found) or "nothing"),
        )
    table = _find_table(folder, listing, content)
    if table is None:
        return _look_in("folders", listing, content, ())
    names, lengths = _of(listing, content)
    return _Look("files", content, names, lengths, table=table)


def _main_content(listing: Listing) -> Content | None:
    """What most files are; TIFFs can only be read as numbers."""
    arrays = sum(is_of("array", name) for name in listing.names)
    images = sum(is_of("image", name) for name in listing.names)
    tiffs = sum(is_of("pixels", name) for name in listing.names) - images
    if not arrays + images + tiffs:
        return None
    if arrays >= images + tiffs:
        return "array"
    return "pixels" if tiffs else "image"


def _of(listing: Listing, content: Content) -> tuple[list[str], list[int]]:
    rows = [row for row, name in enumerate(listing.names) if is_of(content, name)]
    return [listing.names[row] for row in rows], [listing.lengths[row] for row in rows]


def _look_in(kind: str, listing: Listing, content: Content, archives: Sequence[str]) -> _Look:
    """Class folders, with given splits above them or not; files that lie in no folder are a pattern."""
    names, lengths = _of(listing, content)
    tops = {name.partition("/")[0] for name in names}
    has_splits = "train" in tops and all(name.count("/") >= 2 and name.partition("/")[0] in FOLDERS for name in names)
    splits = {top: FOLDERS[top] for top in FOLDERS if top in tops} if has_splits else None
    if splits is not None and len(set(splits.values())) == len(splits):
        classes = {name.split("/")[1] for name in names}
        return _Look(kind, content, names, lengths, archives, splits, len(classes))
    if all("/" in name for name in names) and (len(tops) > 1 or kind == "tar"):
        return _Look(kind, content, names, lengths, archives, None, len(tops))
    return _Look(kind if kind == "tar" else "files", content, names, lengths, archives)


def _find_table(folder: Path, listing: Listing, content: Content) -> tuple[str, LabelTable] | None:
    """The file of labels that names every file of this content, and no other; the first by name."""
    names = {name for name in listing.names if is_of(content, name)}
    for row, path in enumerate(listing.names):
        if not path.lower().endswith(_TABLES) or listing.lengths[row] > _LARGEST_TABLE:
            continue
        try:
            table = parse_labels((folder / path).read_bytes(), form_of(path))
        except (LabelsFault, OSError):
            continue
        beside = path.rpartition("/")[0]
        lead = f"{beside}/" if beside else ""
        bare = Counter(name.rpartition("/")[2] for name in names)
        ways = (set(table.paths), {lead + each for each in table.paths})
        by_bare = max(bare.values()) == 1 and set(table.paths) == set(bare)
        if names in ways or by_bare:
            return path, table
    return None


def _in_words(look: _Look) -> str:
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[look.content]
    text = f"{len(look.names):,} {what}"
    if look.classes:
        text += f" in {look.classes:,} classes"
    if look.splits:
        text += f", in {' and '.join(look.splits.values())}"
    if look.archives:
        text += f", in {len(look.archives):,} tar{'s' if len(look.archives) > 1 else ''}"
    return text + (f", with {look.table[0]}" if look.table else "")


# writing -------------------------------------------------------------------------------------------------------


def _render(look: _Look, folder: Path, recipe: Path) -> str:
    where = _where(folder, recipe)
    blocks = [
        f"# {escaped(_in_words(look))}.\n# To use it: imagenet-prep convert DATA_DIR --config {quoted(recipe.name)}",
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
    return name if where == "." else f"{where.rstrip('/')}/{name}"


def _render_source(look: _Look, where: str) -> str:
    if look.kind == "folders":
        note = "the splits, and in each a folder a class" if look.splits else "a folder a class"
        return f"source:\n  folders: {_quoted(where)}   # {note}"
    if look.kind == "tar":
        names = [_quoted(_below(where, name)) for name in look.archives]
        text = names[0] if len(names) == 1 else "\n" + "\n".join(f"    - {name}" for name in names)
        return f"source:\n  tar: {text}   # read in place".replace(":  ", ": ")
    endings = sorted({name.rpartition(".")[2] for name in look.names})
    deep = "**/" if any("/" in name for name in look.names) else ""
    patterns = [_quoted(_below(where, f"{deep}*.{ending}")) for ending in endings]
    text = patterns[0] if len(patterns) == 1 else "\n" + "\n".join(f"    - {pattern}" for pattern in patterns)
    return f"source:\n  files: {text}"


def _render_labels(look: _Look, where: str) -> str:
    assert look.table is not None
    path, table = look.table
    columns = f", with the columns {escaped(', '.join(table.columns))}" if table.columns else ""
    return f"labels: {_quoted(_below(where, path))}   # {len(table.paths):,} lines{columns}"


def _render_splits(look: _Look) -> str:
    if look.splits:
        return f"# splits: the folders {', '.join(look.splits)} are recognised"
    if len(look.names) < FEWEST or min(_sizes(look, SHARES).values()) == 0:
        return "# splits: {train: 0.9, validation: 0.1}   # one split, train, as it is"
    shares = "".join(f"\n  {name}: {share}" for name, share in SHARES.items())
    return f"splits:                     # by a hash of the name: files that come later move none{shares}"


def _sizes(look: _Look, shares: Mapping[str, float]) -> dict[str, int]:
    """Bytes of each split by fractions; names as the recipe's source gives them hash alike only in folders and tars."""
    sizes = dict.fromkeys(shares, 0)
    split_of = Shares(shares).split_of
    for name, length in zip(look.names, look.lengths, strict=True):
        sizes[split_of(name)] += max(1, length)
    return sizes


def _render_shards(look: _Look) -> str:
    if look.splits:
        sizes = dict.fromkeys(look.splits.values(), 0)
        for name, length in zip(look.names, look.lengths, strict=True):
            sizes[look.splits[name.partition("/")[0]]] += length
    elif len(look.names) < FEWEST or min(_sizes(look, SHARES).values()) == 0:
        sizes = {"train": sum(look.lengths)}
    else:
        total = sum(look.lengths)
        sizes = {name: round(total * share) for name, share in SHARES.items()}
    lines = [f"  {name}: {_count(size)}" for name, size in sizes.items()]
    return "\n".join(["shards:                     # files of about 100 MB each, at least one", *lines])


def _count(size: int) -> int:
    return min(MAX_SHARDS, max(1, round(size / SHARD_SIZE)))


def _render_record(look: _Look) -> str:
    extra = list(look.table[1].columns) if look.table else []
    if look.content == "image" and look.is_labelled and not extra:
        return "record: inception           # the fifteen features of ImageNet's records; labels count from 1"
    wishes = usual(look.content, look.is_labelled, is_rescaled=False)
    lines = [f"  {_quoted(wish.feature)}: {wish.column}" for wish in wishes]
    lines += [f"  {_quoted(name)}: {{from: {_quoted(column_name(name))}, optional: true}}" for name in extra]
    return "\n".join(["record:                     # feature: column", *lines])
