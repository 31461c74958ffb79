"""render_recipe: a Proposal -> the text of its recipe, with a comment at each choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.escaping import escaped
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.init.source_text import literal_folder, render_source
from imagenet_prep.init.written_files import TABLE, contents_of, written_path
from imagenet_prep.recipes.columns import RESERVED, Content, becoming_jpeg
from imagenet_prep.recipes.formats import FORMATS
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_lines import block, flow, flow_list, path_below, place_in_recipe
from imagenet_prep.sources.patterns import literal
from imagenet_prep.sources.tars import noun_of
from imagenet_prep.text import number_of

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits proposed for a set without splits."""

FEWEST = 100
"""The smallest set that is split."""

_CONTENT_NOUNS: dict[Content, tuple[str, str]] = {
    "image": ("image", "images"),
    "pixels": ("image as numbers", "images as numbers"),
    "array": ("array", "arrays"),
}
_CONTENT_NOTES: dict[Content, str] = {
    "image": "images are kept as they are; `resize: 256` makes them smaller",
    "pixels": "images are decoded to numbers; min_val and max_val would rescale them to [0, 1]",
    "array": "min_val and max_val would rescale them to [0, 1]",
}
_ANNOTATION_NOTES = {"boxes": "the objects of each image", "mask": "the class of each pixel"}
_PLACE_NOTES = {
    "manifest": "by lists of names",
    "value": "by the values of the column",
    "folder": "by the folders",
    "files": "by the folders",
}
"""The note on the splits, by the key of their places."""


def describe(proposal: Proposal, classes: int) -> str:
    """The findings as one line."""
    noun, nouns = _CONTENT_NOUNS[proposal.content]
    text = number_of(len(proposal.names), noun, nouns)
    if classes:
        text += f" in {number_of(classes, 'class', 'classes')}"
    splits = [*proposal.places, *proposal.splits.values(), *proposal.lists, *proposal.divided]
    split_names = dict.fromkeys(filter(None, splits))
    if split_names:
        text += f", in {' and '.join(split_names)}"
    if proposal.kind == "tar":
        archives = proposal.paths[""]
        text += f", in {number_of(len(archives), noun_of(archives))}"
    if proposal.table:
        text += f", with {proposal.table.place}"
    return text


def render_recipe(
    proposal: Proposal, folder: Path, recipe: Path, options: InitOptions | None = None
) -> str:
    """The text of a recipe for a folder, for the file ``recipe``,
    without its classes and its record.
    """
    place = place_in_recipe(folder, recipe)
    blocks = [
        render_source(proposal, place),
        *_render_table(proposal, place),
        *_render_strip(options or InitOptions()),
        *_render_written_labels(proposal, recipe),
        *_render_annotations(proposal, place),
        block("content", proposal.content, _CONTENT_NOTES[proposal.content]),
        _render_splits(proposal, place),
        "shard_size: 100MB   # files of about this size, at least one; or shards: N",
        "compression: none   # or gzip, zlib",
        "shuffle: true   # the same order every time\n"
        "seed: 12345   # another number is another order",
    ]
    return "\n\n".join(blocks) + "\n"


# labels and annotations ---------------------------------------------------------------------------


def _render_table(proposal: Proposal, place: str) -> list[str]:
    """The key `labels` of a table that names the files of the source."""
    table = proposal.table
    if table is None or proposal.kind not in ("files", "folders", "tar"):
        return []
    file = _file_of_table(table, place)
    labels = {"file": file, **table.options} if table.options or table.files else file
    note = number_of(len(table.table.paths), "path")
    columns = list(table.table.columns)
    if columns:
        noun = "column" if len(columns) == 1 else "columns"
        note += f", with the {noun} {', '.join(columns)}"
    text = block("labels", labels, note)
    if not table.has_labels:
        text += (
            "\n# all columns become features; init with --label COLUMN makes one of them the class"
        )
    return [text]


def _file_of_table(table: LabelsFile, place: str) -> Any:
    """The path of a table, or the paths of those of each split."""
    if not table.files:
        return path_below(place, table.name)
    paths: dict[str, list[str]] = {}
    for split, names in table.files.items():
        paths[split] = [path_below(place, name) for name in names]
    return paths


def _render_strip(options: InitOptions) -> list[str]:
    if not options.strip:
        return []
    note = "taken off every path in tables, lists and annotation files"
    return [block("strip", options.strip, note)]


def _render_written_labels(proposal: Proposal, recipe: Path) -> list[str]:
    """The key `labels` of the table that init writes."""
    if not proposal.written_labels:
        return []
    labels = {"file": written_path(recipe, TABLE), "unlabelled": "skip"}
    if proposal.several:
        labels["several"] = proposal.several
    return [block("labels", labels, "written by init, from the folders and their lists")]


def _render_annotations(proposal: Proposal, place: str) -> list[str]:
    """The keys `boxes` or `mask`, and what becomes of impossible boxes."""
    blocks: list[str] = []
    for key, keys in proposal.annotations.items():
        paths = {name: _annotation(place, name, value) for name, value in keys.items()}
        text = block(key, paths, _ANNOTATION_NOTES[key])
        if keys.get("polygons") == "masks":
            text += (
                "\n# polygons: masks makes a PNG of each outline, which costs time and space; "
                "boxes leaves them out"
            )
        blocks.append(text)
    if proposal.clips_boxes:
        note = "impossible boxes; drop leaves all of them out"
        blocks.append(block("boxes_outside", "clip", note))
    return blocks


def _annotation(place: str, key: str, value: Any) -> Any:
    """The value of a key of `boxes` or `mask`; most are paths."""
    holds_paths = key in (*FORMATS, "captions", "folder")
    if not holds_paths and not (key == "names" and isinstance(value, str)):
        return value
    if isinstance(value, str):
        return path_below(place, value)
    if isinstance(value, Mapping):
        return {split: path_below(place, path) for split, path in value.items()}
    return [path_below(place, path) for path in value]


# splits -------------------------------------------------------------------------------------------


def _render_splits(proposal: Proposal, place: str) -> str:
    if proposal.divided:
        return f"# splits: {', '.join(proposal.divided)}, as the annotations say"
    if text := _render_splits_of_table(proposal):
        return text
    if places := _places_of_splits(proposal, place):
        keys = {key for split_place in places.values() for key in split_place}
        note = next(note for key, note in _PLACE_NOTES.items() if key in keys)
        return block("splits", places, note)
    if proposal.splits:
        source = "source says" if proposal.paths else "folders say"
        return f"# splits: {', '.join(proposal.splits)}, as the {source}"
    if len(proposal.names) < FEWEST:
        return f"# splits: {flow(SHARES)}   # one split, train, as it is"
    return block("splits", SHARES, "by a hash of the name, so that new files move no old ones")


def _render_splits_of_table(proposal: Proposal) -> str:
    """The splits that a table says; "" if it says none."""
    table = proposal.table
    if table is None or table.table.splits is None or proposal.kind not in ("files", "tar"):
        return ""
    if table.splits is not None and not table.splits.is_usual:
        splits = {split: {"value": value} for value, split in table.splits.splits.items()}
        return block("splits", splits, _PLACE_NOTES["value"])
    values = sorted({value for value in table.table.splits if value is not None})
    reason = "each with a file of labels" if table.files else "as the column says"
    return f"# splits: {', '.join(values)}, {reason}"


def _places_of_splits(proposal: Proposal, place: str) -> Mapping[str, Mapping[str, Any]]:
    """The recipe's `splits` by lists or by folders; none if it need not say them."""
    if proposal.lists:
        lists = proposal.lists.items()
        return {split: {"manifest": path_below(place, path)} for split, path in lists}
    if proposal.places or proposal.kind != "files":
        return proposal.places
    lead = literal_folder(proposal, place)
    return {
        split: {"files": path_below(lead, f"{literal(folder)}/**/*")}
        for folder, split in proposal.splits.items()
    }


# files next to the recipe, classes and the record -------------------------------------------------


def files_of(proposal: Proposal, folder: Path, recipe: Path) -> dict[Path, bytes]:
    """The content of the files next to a recipe that it names."""
    place = path_below(place_in_recipe(folder, recipe), proposal.lead.rstrip("/"))
    labels = {path_below(place, name): label for name, label in proposal.written_labels.items()}
    lists = dict(proposal.written_lists)
    if proposal.kind == "files":  # their names start at the recipe
        for split, names in lists.items():
            lists[split] = [path_below(place, name) for name in names]
    return contents_of(recipe, lists, labels)


def render_classes(proposal: Proposal) -> str:
    """The classes that the recipe must name: their folders would be read as something else."""
    if not proposal.classes:
        return ""
    note = "each folder, in the order of the labels"
    return f"\nclasses: {flow_list(proposal.classes)}   # {note}\n"


def render_record(dataset: RecipeDataset, proposal: Proposal) -> str:
    """The record of the recipe, as ``dataset`` has it without the key;
    and which images become JPEGs.
    """
    recorder = dataset.splits[0].recorder
    note = _note_on_jpegs(proposal, is_inception=not isinstance(recorder, MappedRecorder))
    if not isinstance(recorder, MappedRecorder):
        numbers = dataset.classes.numbers
        labels = f"labels are {numbers[0]} to {numbers[-1]}"
        return note + block(
            "record", "inception", f"the fifteen features of ImageNet's records; {labels}"
        )
    columns = [feature.column for feature in recorder.features]
    if proposal.annotations or any(column.startswith(("boxes.", "mask.")) for column in columns):
        return note + (
            "# record: the features of TensorFlow's Object Detection API and DeepLab; "
            "a mapping chooses others"
        )
    return note + block("record", _record_mapping(recorder), "feature: column")


def _note_on_jpegs(proposal: Proposal, *, is_inception: bool) -> str:
    """The note on images that become JPEGs; "" if none does."""
    if proposal.content != "image":
        return ""
    counts = becoming_jpeg(proposal.names, is_inception)
    if not counts:
        return ""
    hint = "keep: true and a mapping of features in record keep their bytes"
    return f"# {escaped(counts)}; {hint}\n"


def _record_mapping(recorder: MappedRecorder) -> dict[str, Any]:
    """The column of each feature; columns of a labels file may be empty."""
    record: dict[str, Any] = {}
    of_table = []
    for feature in recorder.features:
        if feature.column.removesuffix(".list") in RESERVED:
            record[feature.feature] = feature.column
        else:
            of_table.append(feature)
    for feature in of_table:
        if feature.feature in record:
            continue
        short_name = feature.feature.removeprefix("labels.")
        name = feature.feature if short_name in record else short_name
        record[name] = {"from": feature.column, "optional": True}
    return record
