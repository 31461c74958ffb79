"""A recipe -> what is to be made of it: for each split a catalog, a recorder, and how many shards of which name."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.formats import inception
from imagenet_prep.formats.compressed import Compression
from imagenet_prep.formats.image import Check
from imagenet_prep.formats.labels_file import LabelsFault, typed
from imagenet_prep.formats.pixels import Reencode, codec
from imagenet_prep.ilsvrc2012 import SEED
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes import columns as cols
from imagenet_prep.recipes import contents, labelling, rules
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.dividing import Division, divide
from imagenet_prep.recipes.inputs import Inputs, Manifest, data_root, find_inputs
from imagenet_prep.recipes.labelling import Classes, Labelled
from imagenet_prep.recipes.reading import RecipeFile, read_recipe
from imagenet_prep.recipes.recorders import MappedRecorder
from imagenet_prep.recorder import InceptionRecorder, Recorder
from imagenet_prep.sources.catalog import Catalog, Listed
from imagenet_prep.sources.listing import Listing
from imagenet_prep.storage import save_bytes, writing

RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """One split of a recipe.

    Args:
        name: "train", ...
        prefix: what its shards' names begin with: ``prefix-00000-of-00008``.
        catalog: its items, in the order before the shuffle.
        origin: the folder, archive or manifest that the recipe names.
        shards: how many there are.
        shuffle: whether the rows are shuffled, with ``seed``.
        seed: of the shuffle.
        recorder: makes a record of an item.
    """

    name: str
    prefix: str
    catalog: Catalog
    origin: Path
    shards: int
    shuffle: bool
    seed: int
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole recipe, held against its inputs.

    Args:
        path: the recipe.
        splits: in the order in which the recipe has them.
        folder: where below the output the shards go, as ``output_file_prefix`` says; "" for the output itself.
        compression: of each shard.
        skip_bad: whether bad items are left out.
        settings: all that decides bytes beside the items, for fingerprints and the manifest; plain JSON.
        features: what every record holds: by name its kind, whether it may be missing, and how many values (None: any).
        classes: names, words and numbers of the classes; empty if there are none.
        notes: what to tell the user.
        manifest: a manifest_file that is still to be made; see ``save_manifest``.
    """

    path: Path
    splits: tuple[SplitPlan, ...]
    folder: str
    compression: Compression
    skip_bad: bool
    settings: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    classes: Classes
    notes: tuple[str, ...]
    manifest: Manifest | None = None

    def save_manifest(self) -> None:
        """Write the manifest_file that the recipe names and that was not there; nothing if there is none to make."""
        if self.manifest is not None:
            with writing(self.manifest.path):
                self.manifest.path.parent.mkdir(parents=True, exist_ok=True)
                save_bytes(self.manifest.path, "".join(f"{name}\n" for name in self.manifest.names).encode())


def load(recipe: Path, root: Path | None, engine: Engine, *, progress: Progress | None = None) -> Plan:
    """Read a recipe, list its files, and plan what is to be made of them. Nothing is written.

    Args:
        recipe: the file.
        root: what relative paths begin with; None: DATAPATH of the environment, else the recipe's own folder.
        engine: where folders and archives are listed.
        progress: told what is being listed.

    Raises:
        UsageError: the recipe is wrong; the error names file, line and key.
        InputError: an input is missing or damaged, or contradicts the recipe; the error names file, line or path.
    """
    return plan_recipe(read(recipe), root, engine, progress=progress)


def read(recipe: Path) -> RecipeFile:
    """Read a recipe and hold its keys against each other, without a look at any input.

    Raises:
        UsageError: it is wrong; the error names file, line and key.
        InputError: it can't be read.
    """
    file = read_recipe(recipe)
    rules.check_rules(file)
    return file


def plan_recipe(file: RecipeFile, root: Path | None, engine: Engine, *, progress: Progress | None = None) -> Plan:
    """What ``load`` does once the recipe is read; not for recipes of ImageNet itself (``rules.is_imagenet``)."""
    folder = data_root(file, root)
    (progress or Silent()).note(f"listing the files of {file.path}")
    inputs = find_inputs(file, folder, engine)
    content = contents.decide(file, inputs.listing)
    listing, notes = contents.keep(file, inputs, content)
    found = _labelled(file, inputs, listing, folder, content)
    divisions, labelled, layout = found.divisions, found.labelled, found.layout
    extra = _extra_columns(file, layout, labelled, content, listing)
    counts = _shard_counts(file, listing, divisions)
    shuffle = {each.name: _shuffles(file, each) for each in divisions}
    seed = SEED if file.recipe.seed is None else file.recipe.seed
    prefix_folder, prefix = rules.prefix_of(file)
    splits = tuple(
        SplitPlan(
            name=each.name,
            prefix=_prefix(prefix, each.name, len(divisions)),
            catalog=_catalog(each, listing, labelled, extra.values),
            origin=inputs.origin,
            shards=counts[each.name],
            shuffle=shuffle[each.name],
            seed=seed,
            recorder=_recorder(file, layout, extra.features, content, labelled, each.name),
        )
        for each in divisions
    )
    return Plan(
        path=file.path,
        splits=splits,
        folder=prefix_folder,
        compression=file.recipe.compression,
        skip_bad=file.recipe.skip_bad,
        settings=_settings(file, extra.features, content, listing, labelled.classes),
        features=_inception_features() if extra.features is None else cols.promise(extra.features),
        classes=labelled.classes,
        notes=(*notes, *found.notes, *labelled.notes, *_link_notes(listing)),
        manifest=inputs.manifest,
    )


# labels and splits ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """Splits and labels of a listing, and whether records are of Inception's layout."""

    divisions: list[Division]
    labelled: Labelled
    layout: bool
    notes: list[str]


def _labelled(file: RecipeFile, inputs: Inputs, listing: Listing, root: Path, content: Content) -> _Found:
    table = labelling.read_table(file, root)
    in_folders = table is None and inputs.has_folders and _lie_in_folders(file, listing)
    has_labels = in_folders or (table is not None and table[0].labels is not None)
    if file.recipe.record is None:
        is_inception = content == "image" and has_labels and not (table is not None and table[0].columns)
    else:
        is_inception = file.recipe.record == "inception"
    if is_inception and not has_labels:
        hint = "expected class folders, or a file that `labels` names"
        raise file.fault(("record",), "Inception's records need labels", hint)
    divisions, notes = divide(file, inputs, listing, root, int(in_folders))
    first = labelling.first_label(file, is_inception=is_inception)
    given = labelling.given_classes(file, root, first)
    if table is not None:
        labelled = labelling.label_by_table(file, inputs, listing, *table, given, first)
        divisions = [_without_left_out(file, each, labelled) for each in divisions]
    elif in_folders:
        labelled = labelling.label_by_folder(file, inputs, listing, divisions, given, first)
    else:
        labelled = Labelled(Classes(), array("q", [0]) * len(listing))
    for key in ("classes", "first_label"):
        if not has_labels and getattr(file.recipe, key) is not None:
            raise file.fault((key,), "there are no labels", "expected class folders, or a file that `labels` names")
    return _Found(divisions, labelled, is_inception, notes)


def _lie_in_folders(file: RecipeFile, listing: Listing) -> bool:
    """Whether folders are classes: always in a source of folders, in a tar if its files lie in some."""
    assert file.recipe.source is not None
    return file.recipe.source.folders is not None or all("/" in name for name in listing.names)


def _without_left_out(file: RecipeFile, division: Division, labelled: Labelled) -> Division:
    rows = [row for row in division.rows if labelled.labels[row] >= 0]
    if not rows:
        raise InputError(f"no file of split {division.name} has a label", f"expected some in {labelled.table_path}")
    return dataclasses.replace(division, rows=rows)


def _shuffles(file: RecipeFile, division: Division) -> bool:
    """Unless the recipe says so, a manifest's order stays, and any other is shuffled."""
    if file.recipe.manifest_file is not None:
        return False  # it was shuffled when it was made, and is used as it is
    return not division.is_ordered if file.recipe.shuffle is None else file.recipe.shuffle


def _catalog(division: Division, listing: Listing, labelled: Labelled, values: Mapping[str, list[Any]]) -> Catalog:
    """The rows of a split: by label, then by name, or in its own order."""
    rows = list(division.rows)
    if not division.is_ordered:
        rows.sort(key=labelled.labels.__getitem__)  # names are in order already
    picked = listing.picked(rows)
    listed = Listed(
        [name.encode() for name in picked.names],
        array("H", [labelled.labels[row] for row in rows]),
        *(picked.container_ids, picked.offsets, picked.lengths, picked.stamps),
        {name: [column[row] for row in rows] for name, column in values.items()},
    )
    classes = labelled.classes
    return Catalog.listed(division.name, classes.names, classes.texts, picked.containers, listed)


def _link_notes(listing: Listing) -> list[str]:
    if not listing.links:
        return []
    shown = ", ".join(listing.links[:3]) + (", ..." if len(listing.links) > 3 else "")
    return [f"{len(listing.links):,} files are links that lead out of the folder of the data: {shown}"]


# records -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Extra:
    """Features of a mapped record (None: Inception's), and the columns of the labels file by row of the listing."""

    features: tuple[Mapped, ...] | None
    values: dict[str, list[Any]]


def _extra_columns(
    file: RecipeFile, is_inception: bool, labelled: Labelled, content: Content, listing: Listing
) -> _Extra:
    """What records hold, and the values for it that a file of labels has."""
    if is_inception:
        return _Extra(None, {})
    table = labelled.table
    extra = {cols.column_name(name): name for name in table.columns} if table is not None else {}
    if file.recipe.record is None:
        asked = cols.usual(content, labelled.is_labelled, file.recipe.min_val is not None)
        asked += [cols.Wish(name, name, None, optional=True) for name in extra]
    else:
        asked = cols.wishes(file)
    cols.check_wishes(file, asked, content, labelled.is_labelled, extra)
    features: list[Mapped] = []
    values: dict[str, list[Any]] = {}
    for wish in asked:
        if wish.column in extra:
            features.append(_from_table(file, wish, extra[wish.column], labelled, listing, values))
        else:
            features.append(cols.builtin(wish, content, labelled.is_labelled))
    features.sort(key=lambda each: each.feature.encode())
    return _Extra(tuple(features), values)


def _from_table(
    file: RecipeFile,
    wish: cols.Wish,
    name: str,
    labelled: Labelled,
    listing: Listing,
    values: dict[str, list[Any]],
) -> Mapped:
    """A feature of a column of the labels file, whose values go to ``values`` by row of the listing."""
    table, path = labelled.table, labelled.table_path
    assert table is not None
    assert path is not None
    try:
        kind, column = typed(table.columns[name], table.lines, table.is_text, wish.kind)
    except LabelsFault as fault:
        raise labelling.at_line(path, LabelsFault(fault.line, f"{name}: {fault.reason}")) from fault
    by_row = [column[row] if row >= 0 else None for row in labelled.table_rows]
    lacking = [row for row, value in enumerate(by_row) if value is None and labelled.labels[row] >= 0]
    if lacking and not wish.optional:
        line = table.lines[labelled.table_rows[lacking[0]]]
        raise InputError(
            f"{path}, line {line}: {name} has no value for {listing.names[lacking[0]]}",
            f"expected one in every line, {len(lacking):,} have none",
            f"fill it in, or write in {file.path}: {wish.feature}: {{from: {wish.column}, optional: true}}",
        )
    if wish.column in values and values[wish.column] != by_row:
        raise file.fault(("record", wish.feature), f"{wish.column} is of another type above", "expected one type")
    values[wish.column] = by_row
    is_list = any(isinstance(value, list) for value in by_row)
    optional = bool(lacking) if file.recipe.record is None else wish.optional
    return Mapped(wish.feature, wish.column, kind, optional, is_list)


def _recorder(
    file: RecipeFile,
    is_inception: bool,
    features: tuple[Mapped, ...] | None,
    content: Content,
    labelled: Labelled,
    split: str,
) -> Recorder:
    recipe = file.recipe
    how, check = rules.reencode_of(file), _check(file)
    numbers = labelled.classes.numbers
    if is_inception or features is None:
        is_plain = numbers == tuple(range(1, len(numbers) + 1))
        return InceptionRecorder(check, how, None if is_plain else numbers)
    bounds = None if recipe.min_val is None or recipe.max_val is None else (recipe.min_val, recipe.max_val)
    return MappedRecorder(features, content, split, numbers, check, how, bounds, recipe.array)


def _check(file: RecipeFile) -> Check:
    """How closely to look at images: at every one, unless the recipe says otherwise."""
    images = file.recipe.images
    return "header" if images is not None and images.check == "header" else "decode"


def _inception_features() -> dict[str, dict[str, Any]]:
    """What a record of 2016's layout holds."""
    many = "image/object/bbox/"
    whole = ("image/height", "image/width", "image/channels", "image/class/label", f"{many}label")
    return {
        name: {
            "kind": "int64" if name in whole else "float" if name.startswith(many) else "bytes",
            "optional": False,
            "values": None if name.startswith(many) else 1,
        }
        for name in sorted(inception.FEATURES)
    }


# shards --------------------------------------------------------------------------------------------------------


def _shard_counts(file: RecipeFile, listing: Listing, divisions: Sequence[Division]) -> dict[str, int]:
    """How many shards each split gets: as the recipe says, or as many as its files' bytes fill."""
    counts, size = rules.shard_counts(file), rules.shard_size(file)
    names = [each.name for each in divisions]
    if isinstance(counts, Mapping):
        wrong = sorted(set(counts) ^ set(names))
        if wrong:
            key = ("shards", wrong[0]) if wrong[0] in counts else ("shards",)
            what = f"there is no split {wrong[0]}" if wrong[0] in counts else f"no number for split {wrong[0]}"
            raise file.fault(key, what, f"expected a number for each of {', '.join(names)}")
        return dict(counts)
    if counts is not None:
        return dict.fromkeys(names, counts)
    assert size is not None
    return {each.name: _filled(sum(listing.lengths[row] for row in each.rows), size, each) for each in divisions}


def _filled(total: int, size: int, division: Division) -> int:
    """As many shards as bytes fill; no more than there are files."""
    return max(1, min(-(-total // size), len(division.rows), rules.MAX_SHARDS))


def _prefix(prefix: str, split: str, splits: int) -> str:
    """The prefix itself for a single split, prefix and split for several; without a prefix the split."""
    return (prefix if splits == 1 else f"{prefix}-{split}") if prefix else split


def _settings(
    file: RecipeFile, features: tuple[Mapped, ...] | None, content: Content, listing: Listing, classes: Classes
) -> dict[str, Any]:
    """All that decides the bytes of records beside the items; what is not set stays out."""
    recipe, how = file.recipe, rules.reencode_of(file)
    settings: dict[str, Any] = {"recipe": RECIPE_VERSION, "content": content, "compression": recipe.compression}
    if features is None:
        settings["record"] = "inception"
    else:
        settings["record"] = {each.feature: _canonical(each) for each in features}
    if classes.numbers:  # any that don't count on from the first are the names of their classes, too
        settings["first_label"] = classes.numbers[0]
    if how is not None:
        settings["reencode"] = _reencode_settings(how)
    elif content == "pixels" and any(name.lower().endswith((".jpg", ".jpeg")) for name in listing.names):
        settings["codec"] = codec()  # how a JPEG becomes numbers is the decoder's choice
    if recipe.min_val is not None:
        settings["rescale"] = [float(recipe.min_val), float(recipe.max_val or 0)]
    if recipe.array is not None:
        settings["array"] = recipe.array
    return settings


def _canonical(mapped: Mapped) -> dict[str, Any]:
    return {"from": mapped.column, "type": mapped.kind, "optional": mapped.optional}


def _reencode_settings(how: Reencode) -> dict[str, Any]:
    return {**dataclasses.asdict(how), "codec": codec()}
