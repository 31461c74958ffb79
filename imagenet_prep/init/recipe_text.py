"""render_recipe: a Proposal -> the text of its recipe, with a comment at each choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.escaping import escaped
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.init.written_files import TABLE, contents_of, written_path
from imagenet_prep.recipes.columns import RESERVED, Content, becoming_jpeg, is_of
from imagenet_prep.recipes.formats import FORMATS
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.mask_names import folder_around
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_lines import block, flow, path_below, place_in_recipe
from imagenet_prep.sources.patterns import literal
from imagenet_prep.sources.tars import noun_of
from imagenet_prep.text import number_of

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits proposed for a set without splits."""

FEWEST = 100
"""The smallest set that is split."""

_MOST_NAMED = 20  # tars that a recipe lists one by one


def describe(proposal: Proposal, classes: int) -> str:
    """The findings as one line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[proposal.content]
    text = f"{len(proposal.names):,} {what}"
    if classes:
        text += f" in {classes:,} classes"
    named = list(
        dict.fromkeys(
            [*proposal.places, *proposal.splits.values(), *proposal.lists, *proposal.divided]
        )
    )
    if named:
        text += f", in {' and '.join(named)}"
    if proposal.kind == "tar":
        archives = proposal.paths[""]
        text += f", in {number_of(len(archives), noun_of(archives))}"
    return text + (f", with {proposal.table.place}" if proposal.table else "")


def render_recipe(
    proposal: Proposal, folder: Path, recipe: Path, asked: InitOptions | None = None
) -> str:
    """The text of a recipe for a folder, for the file ``recipe``,
    without its classes and its record.
    """
    asked = asked or InitOptions()
    where = place_in_recipe(folder, recipe)
    named = "the splits, each with a folder per class" if proposal.splits else "a folder per class"
    table = proposal.table if proposal.kind in ("files", "folders", "tar") else None
    notes = {"folders": named, "files": "patterns of the images"}
    blocks = [block("source", _source(proposal, where), notes.get(proposal.kind, "read in place"))]
    blocks[-1] += "".join(f"\n# {escaped(remark)}" for remark in proposal.remarks)
    if table:
        names = table.table.columns
        columns = (
            f", with the {'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
            if names
            else ""
        )
        said: Any = path_below(where, table.where)
        if table.files:
            said = {
                split: [path_below(where, name) for name in names]
                for split, names in table.files.items()
            }
        said = {"file": said, **table.options} if table.options or table.files else said
        blocks.append(block("labels", said, f"{len(table.table.paths):,} lines{columns}"))
        if not table.has_labels:
            blocks[-1] += (
                "\n# all columns become features; init with --label COLUMN makes one of them "
                "the class"
            )
    if asked.strip:
        blocks.append(
            block(
                "strip", asked.strip, "taken off every path in tables, lists and annotation files"
            )
        )
    if proposal.written_labels:
        several = {"several": proposal.several} if proposal.several else {}
        said = {"file": written_path(recipe, TABLE), "unlabelled": "skip", **several}
        blocks.append(block("labels", said, "written by init, from the folders and their lists"))
    for key, value in proposal.annotations.items():
        paths = {name: _annotation(where, name, each) for name, each in value.items()}
        blocks.append(block(key, paths, _ANNOTATION_NOTES[key]))
        if value.get("polygons") == "masks":
            blocks[-1] += (
                "\n# polygons: masks makes a PNG of each outline, which costs time and space; "
                "boxes leaves them out"
            )
    if proposal.clips_boxes:
        blocks.append(
            block("boxes_outside", "clip", "impossible boxes; drop leaves all of them out")
        )
    blocks += [
        block("content", proposal.content, _CONTENT_NOTES[proposal.content]),
        _render_splits(proposal, where, asked),
        "shard_size: 100MB   # files of about this size, at least one; or shards: N",
        "compression: none   # or gzip, zlib",
        (
            "shuffle: true   # the same order every time\nseed: "
            "12345   # another number is another "
            "order"
        ),
    ]
    return "\n\n".join(blocks) + "\n"


_ANNOTATION_NOTES = {"boxes": "the objects of each image", "mask": "the class of each pixel"}

_CONTENT_NOTES: dict[Content, str] = {
    "image": "images are kept as they are; `resize: 256` makes them smaller",
    "pixels": "images are decoded to numbers; min_val and max_val would rescale them to [0, 1]",
    "array": "min_val and max_val would rescale them to [0, 1]",
}


def _annotation(where: str, name: str, value: Any) -> Any:
    """The value of a key of `boxes` or `mask`; most are paths."""
    is_path = name in (*FORMATS, "captions", "folder") or (
        name == "names" and isinstance(value, str)
    )
    if not is_path:
        return value
    if isinstance(value, Mapping):
        return {split: path_below(where, path) for split, path in value.items()}
    return (
        path_below(where, value)
        if isinstance(value, str)
        else [path_below(where, each) for each in value]
    )


def _source(proposal: Proposal, where: str) -> dict[str, Any]:
    """The value of `source`."""
    place = path_below(where, proposal.lead.rstrip("/"))
    if proposal.paths:
        said: Any = {split: _few(names, where) for split, names in proposal.paths.items()}
        said = said.get("", said)
    else:
        said = place if proposal.kind == "folders" else _patterns(proposal, place)
    return {proposal.kind: said, **proposal.options}


def _few(names: Sequence[str], where: str) -> list[str]:
    """The names, or patterns that match them if they are many."""
    if len(names) <= _MOST_NAMED:
        return [literal(path_below(where, name)) for name in names]
    patterns = sorted({path_below(literal(where), re.sub(r"\d+", "*", name)) for name in names})
    if len(patterns) <= _MOST_NAMED:
        return patterns
    lead = "**/" if any("/" in name for name in names) else ""
    return [
        path_below(literal(where), f"{lead}*.{ending}")
        for ending in sorted({n.rpartition(".")[2] for n in names})
    ]


def _patterns(proposal: Proposal, where: str) -> list[str]:
    """The patterns that match all files, one per file extension;
    names without one give theirs, with any digits.
    """
    deep = "**/" if any("/" in name for name in proposal.names) else ""
    around = folder_around(proposal.names)
    deep += f"{literal(around)}/" if around else ""
    endings, others = set(), set()
    for name in proposal.names:
        if is_of(proposal.content, name):
            endings.add(f"*.{literal(name.rpartition('.')[2])}")
        else:
            others.add(re.sub(r"\d+", "[0-9]*", literal(name.rpartition("/")[2])))
    patterns = ["*"] if len(others) > _MOST_NAMED else sorted(endings | others)
    return [path_below(literal(where), deep + pattern) for pattern in patterns]


def files_of(proposal: Proposal, folder: Path, recipe: Path) -> dict[Path, bytes]:
    """The content of the files next to a recipe that it names."""
    where = path_below(place_in_recipe(folder, recipe), proposal.lead.rstrip("/"))
    labels = {path_below(where, name): label for name, label in proposal.written_labels.items()}
    lists = dict(proposal.written_lists)
    if proposal.kind == "files":  # their names start at the recipe
        lists = {
            split: [path_below(where, name) for name in names] for split, names in lists.items()
        }
    return contents_of(recipe, lists, labels)


def _render_splits(proposal: Proposal, where: str, asked: InitOptions) -> str:
    if proposal.divided:
        return f"# splits: {', '.join(proposal.divided)}, as the annotations say"
    table = proposal.table
    if table is not None and table.table.splits is not None and proposal.kind in ("files", "tar"):
        values = {value for value in table.table.splits if value is not None}
        if table.splits is not None and not table.splits.is_usual:
            splits = {split: {"value": value} for value, split in table.splits.splits.items()}
            return block("splits", splits, _PLACE_NOTES["value"])
        how = "each with a file of labels" if table.files else "as the column says"
        return f"# splits: {', '.join(sorted(values))}, {how}"
    if proposal.lists:
        lists = {
            name: {"manifest": path_below(where, path)} for name, path in proposal.lists.items()
        }
        return block("splits", lists, _PLACE_NOTES["manifest"])
    if proposal.places:
        keys = {key for place in proposal.places.values() for key in place}
        return block(
            "splits",
            proposal.places,
            next((note for key, note in _PLACE_NOTES.items() if key in keys)),
        )
    if proposal.splits and proposal.kind == "files":
        lead = (
            "." if where.startswith("/") else literal(path_below(where, proposal.lead.rstrip("/")))
        )
        files = {
            name: {"files": path_below(lead, f"{literal(top)}/**/*")}
            for top, name in proposal.splits.items()
        }
        return block("splits", files, "by the folders")
    if proposal.splits:
        return (
            f"# splits: {', '.join(proposal.splits)}, "
            f"as the {'source says' if proposal.paths else 'folders say'}"
        )
    if len(proposal.names) < FEWEST:
        return f"# splits: {flow(SHARES)}   # one split, train, as it is"
    return block("splits", SHARES, "by a hash of the name, so that new files move no old ones")


_PLACE_NOTES = {
    "manifest": "by lists of names",
    "value": "by the values of the column",
    "folder": "by the folders",
    "files": "by the folders",
}
"""The note on the splits, by the key of their places."""


def render_classes(proposal: Proposal) -> str:
    """The classes that the recipe must name: their folders would be read as something else."""
    if not proposal.classes:
        return ""
    return (
        f"\nclasses: [{', '.join(map(flow, proposal.classes))}]   # each folder, "
        "in the order of the labels\n"
    )


def render_record(dataset: RecipeDataset, proposal: Proposal) -> str:
    """The record of the recipe, as ``dataset`` has it without the key;
    and which images become JPEGs.
    """
    recorder, numbers = dataset.splits[0].recorder, dataset.classes.numbers
    is_mapped = isinstance(recorder, MappedRecorder)
    found = becoming_jpeg(proposal.names, not is_mapped) if proposal.content == "image" else ""
    kept = "keep: true and a mapping of features in record keep their bytes"
    note = f"# {escaped(found)} become JPEGs; {kept}\n" if found else ""
    if not isinstance(recorder, MappedRecorder):
        fifteen = (
            f"the fifteen features of ImageNet's records; labels are {numbers[0]} to {numbers[-1]}"
        )
        return note + block("record", "inception", fifteen)
    if proposal.annotations or any(
        each.column.startswith(("boxes.", "mask.")) for each in recorder.features
    ):
        return note + (
            "# record: the features of TensorFlow's Object Detection API and DeepLab; "
            "a mapping chooses others"
        )
    record: dict[str, Any] = {
        e.feature: e.column for e in recorder.features if e.column.removesuffix(".list") in RESERVED
    }
    for each in (each for each in recorder.features if each.feature not in record):
        short = each.feature.removeprefix("labels.")
        record[each.feature if short in record else short] = {"from": each.column, "optional": True}
    return note + block("record", record, "feature: column")
