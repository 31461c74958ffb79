"""A recipe -> its data set: for each split a catalog, a recorder,
and how many shards of which name.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.model import Engine, OnDamaged, Progress, Silent
from imagenet_prep.recipes import columns as cols
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import Annotations, annotate, annotate_rows
from imagenet_prep.recipes.class_names import name_classes
from imagenet_prep.recipes.classes import Classes, given_classes, note_on_first
from imagenet_prep.recipes.column_splits import divisions_of_table
from imagenet_prep.recipes.columns import ENDINGS, Content, is_odd, is_of
from imagenet_prep.recipes.divisions import Division, divide, missing_classes, stratify
from imagenet_prep.recipes.file_kinds import fits, kinds_by_content
from imagenet_prep.recipes.folder_labels import label_by_folder
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labels import Labelled, label_by_table, may_lack_labels, read_table
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.recipe_dataset import (
    RecipeDataset,
    SplitPlan,
    make_recorder,
    settings_of,
)
from imagenet_prep.recipes.recipe_file import RecipeFile, read_recipe
from imagenet_prep.recipes.recipe_paths import data_root
from imagenet_prep.recipes.shared_numbering import SharedNumbering
from imagenet_prep.recipes.source_inputs import find_inputs
from imagenet_prep.recipes.splits import ONLY, are_in_an_image_folder, counted
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Rows, places_of
from imagenet_prep.sources.obstacles import collected, refuse
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord import inception


def read(recipe: Path, text: str | None = None) -> RecipeFile:
    """Read a recipe, or its ``text``, and check that its keys fit together, without reading any
    input.

    Raises:
        UsageError: it is wrong; the error names file, line and key.
        InputError: it can't be read.
    """
    file = read_recipe(recipe, text)
    rules.check_rules(file)
    return file


def load(  # noqa: PLR0913 - settings of a call, by keyword
    recipe: Path | RecipeFile,
    root: AnyPath | None,
    engine: Engine,
    *,
    records: SetRecords | None = None,
    on_damaged: OnDamaged | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> RecipeDataset:
    """List a recipe's files, and plan what is to be made of them. Nothing is written.

    ``recipe`` is the file, or what ``read`` made of it, but not one of ImageNet
    (``rules.is_imagenet``). Relative paths start at ``root``; if None, at DATAPATH of the
    environment, or the folder of the recipe. ``records`` are those of the folder where the
    shards go, for a manifest that can't be made below ``root``, and for the classes of the sets
    that are there; ``overwrite``: this set is made again. ``on_damaged`` is the recipe's by
    default.

    Raises:
        UsageError: the recipe is wrong; the error names file, line and key.
        InputError: an input is missing or damaged, or contradicts the recipe; the error names file,
            line or path.
    """
    file = recipe if isinstance(recipe, RecipeFile) else read(recipe)
    on_damaged = on_damaged or file.recipe.on_damaged
    if records is not None:
        records = records.at(replace(records.layout, set_name=rules.prefix_of(file)[1]))
    folder = data_root(file, local_path(root) if root else None)
    (progress or Silent()).note(f"listing the files of {file.path}")
    layout = records.layout if records else None
    inputs = find_inputs(file, folder, engine, layout=layout, is_raw=root is not None)
    content = _decide(file, inputs.listing)
    listing, notes = _keep(file, inputs, content, on_damaged=on_damaged)
    shared = SharedNumbering.find(records, grows=file.recipe.grow, overwrite=overwrite)
    annotations = _annotated(file, inputs, listing, folder, content, shared)
    try:
        items = _label_and_divide(file, inputs, annotations, folder, content, shared)
    except InputError as error:
        raise _with_obstacles(inputs, file, error) from error
    _refuse_obstacles(inputs, file)
    items.check_expected()
    all_notes = (*notes, *annotations.notes, *items.all_notes(folder))
    return items.dataset(all_notes, on_damaged=on_damaged)


def _with_obstacles(inputs: Inputs, file: RecipeFile, error: InputError) -> InputError:
    """The error that ends a listing, with the obstacles unless they are collected."""
    if collected() is None:
        return all_of([*inputs.obstacles, error])
    _refuse_obstacles(inputs, file)
    return error


def _refuse_obstacles(inputs: Inputs, file: RecipeFile) -> None:
    """Raise one error for all obstacles, or collect each."""
    if inputs.obstacles and collected() is None:
        raise all_of(inputs.obstacles)
    for obstacle in inputs.obstacles:
        refuse(obstacle, subject=file.path.name)


def _annotated(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    root: Path,
    content: Content,
    shared: SharedNumbering,
) -> Annotations:
    """The images of a listing with their boxes and masks;
    raises UsageError if its arrays are not one a file.
    """
    if content == "array" and file.recipe.array is None:
        _refuse_several_arrays(file, listing)
    boxes, mask, marks = file.recipe.boxes, file.recipe.mask, inputs.marks
    if boxes is None and mask is None and not marks:
        return Annotations(listing)
    key = "source"
    if boxes or mask:
        key = "boxes" if boxes else "mask"
    if content != "image":
        raise file.fault((key,), f"content is {content}", "expected it with images only")
    roots = Roots(inputs.base, root, file.recipe.strip or "")
    if marks:
        _refuse_beside_marks(file)
        annotations = annotate_rows(marks, boxes, listing, roots, file.recipe.boxes_outside)
    else:
        annotations = annotate(boxes, mask, listing, roots, file.recipe.boxes_outside)
    shared.number_boxes(file, annotations)
    if inputs.divided and len(annotations.listing) < len(listing):
        raise file.fault(
            (key,), "images would be skipped", "expected manifests of annotated images alone"
        )
    return annotations


def _refuse_beside_marks(file: RecipeFile) -> None:
    """Raise UsageError if the recipe says something that contradicts the
    boxes or masks of the source's rows.
    """
    boxes = file.value.get("boxes", {})
    if file.recipe.record == "inception":
        raise file.fault(
            ("record",),
            "the rows have boxes or masks",
            "expected no `record`: Inception's have no place",
        )
    for key, is_wrong in (
        ("mask", file.recipe.mask),
        ("boxes", boxes.keys() - {"names", "first_label"}),
    ):
        if is_wrong:
            raise file.fault(
                (key,),
                "the rows of the source have boxes or masks already",
                "expected one of the two",
            )


# labels and splits --------------------------------------------------------------------------------


class _DividedFiles(Struct, frozen=True):
    """The files of a recipe with their annotations, splits and labels;
    whether records are of Inception's layout.
    """

    file: RecipeFile
    inputs: Inputs
    content: Content
    annotations: Annotations
    divisions: list[Division]
    labelled: Labelled
    is_inception: bool
    notes: list[str]

    def dataset(self, notes: tuple[str, ...], *, on_damaged: OnDamaged) -> RecipeDataset:
        """The data set of these files."""
        file, labelled, listing = self.file, self.labelled, self.annotations.listing
        features, values = cols.extra_columns(
            file, self.is_inception, labelled, self.content, self.annotations
        )
        settings = settings_of(file, features, self.content, listing, labelled.classes)
        expected: dict[str, Any] = {}
        for key, total in (file.recipe.expected or {}).items():
            expected[self._prefix(key) if isinstance(total, dict) else key] = total
        classes = {division.name: self._classes_in(division) for division in self.divisions}
        divided_count = sum(len(division.rows) for division in self.divisions)
        return RecipeDataset(
            path=file.path,
            splits=tuple(self._plans(features, values)),
            on_damaged=on_damaged,
            settings={**settings, **self.annotations.settings},
            features=inception.PROMISE if features is None else cols.promise(features),
            classes=labelled.classes,
            notes=notes,
            warnings=tuple(missing_classes(classes)),
            grows=file.recipe.grow,
            skipped=len(self.inputs.listing) - divided_count,
            manifest=self.inputs.manifest,
            expected=expected,
            changed_boxes=self.annotations.changed_boxes,
            has_labels=labelled.unlabelled > 0,
        )

    def _prefix(self, split: str) -> str:
        """The set's prefix itself for a single split, prefix and split for several;
        without a prefix the split.
        """
        prefix = rules.prefix_of(self.file)[1]
        if not prefix:
            return split
        return prefix if len(self.divisions) == 1 else f"{prefix}-{split}"

    def _plans(
        self, features: cols.Features, values: Mapping[str, list[Any]]
    ) -> Iterator[SplitPlan]:
        counts, recipe = self._shard_counts(), self.file.recipe
        for division in self.divisions:
            name = division.name
            catalog = self._catalog(division, values)
            recorder = make_recorder(
                self.file, features, self.content, self.labelled, name, self.annotations.masks
            )
            yield SplitPlan(
                name,
                catalog,
                self.inputs.origin,
                counts[name],
                self._is_shuffled(division),
                recipe.seed,
                recorder,
            )

    def _is_shuffled(self, division: Division) -> bool:
        """Whether the rows of a split are shuffled.

        A manifest_file was shuffled when it was made; any other one keeps its order unless the
        recipe says more.
        """
        recipe = self.file.recipe
        if recipe.manifest_file is not None:
            return False
        return recipe.shuffle if "shuffle" in self.file.value else not division.is_ordered

    def _catalog(self, division: Division, values: Mapping[str, list[Any]]) -> Catalog:
        """The rows of a split, known by the prefix of its shards:
        by label, then by name, or in its own order.
        """
        rows: Rows = division.rows
        labels, classes = self.labelled.labels[places_of(rows)], self.labelled.classes
        if not division.is_ordered and (labels[1:] < labels[:-1]).any():
            by_label = np.argsort(labels, kind="stable")  # names are in order already
            rows, labels = np.asarray(rows)[by_label], labels[by_label]
        return replace(
            self.annotations.listing.picked(rows),
            split=self._prefix(division.name),
            classes=dict(enumerate(zip(classes.names, classes.texts, strict=True), 1)),
            labels=labels,
            columns={name: [column[row] for row in rows] for name, column in values.items()},
        )

    def _classes_in(self, division: Division) -> list[str]:
        """The classes that the files of a split have, in order."""
        labels = set(np.unique(self.labelled.labels[places_of(division.rows)]).tolist())
        if self.labelled.several:
            labels = {label for row in division.rows for label in self.labelled.several[row]}
        return [self.labelled.classes.names[label - 1] for label in sorted(labels) if label > 0]

    def check_expected(self) -> None:
        """Compare the files with the totals that the recipe expects.

        Raises:
            InputError: there are more or fewer images or classes.
            UsageError: there is no such split.
        """
        file = self.file
        images = {division.name: len(division.rows) for division in self.divisions}
        classes = {division.name: self._classes_in(division) for division in self.divisions}
        totals = rules.totals_in(file.recipe.expected or {}, images, classes)
        for split, name, expected, actual in totals:
            if split and split not in images:
                raise file.fault(
                    ("expected", split), "no such split", f"expected one of {', '.join(images)}"
                )
            if actual != expected:
                error = _wrong_total(file, split, name, expected, actual)
                refuse(error, rules.kind_of_total(name, expected, actual), split or name)

    def all_notes(self, root: Path) -> Iterator[str]:
        """The notes on images that become JPEGs, splits and labels,
        links out of the data, and a manifest elsewhere.
        """
        names, recipe = self.annotations.listing.names, self.file.recipe
        is_kept = self.content != "image" or recipe.keep or recipe.reencode is not None
        if not is_kept and cols.becoming_jpeg(names.endings(), self.is_inception):
            divided_names = (names[row] for division in self.divisions for row in division.rows)
            yield f"{cols.becoming_jpeg(divided_names, self.is_inception)} become JPEGs"
        yield from (*self.inputs.notes, *self.notes, *self.labelled.notes)
        if links := self.inputs.remarks.links:
            files = number_of(len(links), "file is a link that leads", "files are links that lead")
            yield f"{files} out of the folder of the data: {listed(links)}"
        manifest = self.inputs.manifest
        if manifest is not None and not str(manifest.path).startswith(f"{root}/"):
            yield f"the manifest is made as {manifest.path}"

    def _shard_counts(self) -> dict[str, int]:
        """How many shards each split gets: as the recipe says, or as many as its files' bytes fill.

        Raises:
            UsageError: no number for a split, or so many shards that most would be empty.
        """
        file = self.file
        file_counts = {division.name: len(division.rows) for division in self.divisions}
        declared = rules.shard_counts(file)
        if declared is None:
            counts = self._counts_by_size(rules.shard_size(file) or 1)
        elif isinstance(declared, Mapping):
            counts = dict(declared)
        else:
            counts = dict.fromkeys(file_counts, declared)
        if unmatched := sorted(counts.keys() ^ file_counts.keys()):
            split = unmatched[0]
            is_unknown = split in counts
            problem = f"there is no split {split}" if is_unknown else f"no number for split {split}"
            expected = f"expected a number for each of {', '.join(file_counts)}"
            raise file.fault(("shards", split), problem, expected)
        for split, file_count in file_counts.items():
            if counts[split] > order.most_shards(file_count):
                raise _too_many_shards(file, split, counts[split], file_count)
        return counts

    def _counts_by_size(self, shard_size: int) -> dict[str, int]:
        """How many shards of this size the bytes of each split fill."""
        counts: dict[str, int] = {}
        for division in self.divisions:
            filled = -(-self.annotations.listing.size(division.rows) // shard_size)
            counts[division.name] = max(1, min(filled, len(division.rows), MAX_SHARDS))
        return counts


def _wrong_total(file: RecipeFile, split: str, name: str, expected: int, actual: int) -> InputError:
    """The error for another number of images or classes, of a split or of all ("")."""
    place, where = file.place(("expected", name)), ""
    if split:
        place, where = file.place(("expected", split, name)), f" in {split}"
    return InputError(
        f"{place}: {expected:,} {name} expected, {actual:,} found{where}",
        "expected the whole set",
        "get what is missing, or correct `expected` in the recipe",
    )


def _too_many_shards(file: RecipeFile, split: str, count: int, file_count: int) -> UsageError:
    """The error for so many shards that most would be empty."""
    keys = (("shards", split), ("shards",), ("num_shards",))
    key = next(key for key in keys if key in file.lines)
    where = f" in split {split}" if split != ONLY else ""
    problem = f"{number_of(count, 'shard')} of {number_of(file_count, 'file')}{where}"
    return file.fault(key, problem, f"expected at most {order.most_shards(file_count):,}")


def _label_and_divide(
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    content: Content,
    shared: SharedNumbering,
) -> _DividedFiles:
    """The files with their labels, in their splits."""
    source = read_table(file, root) or inputs.table
    table = source[0] if source is not None else None
    in_folders = source is None and _are_in_class_folders(file, inputs, annotations.listing)
    has_labels = in_folders or (table is not None and table.labels is not None)
    is_inception = file.recipe.record == "inception"
    if file.recipe.record is None and has_labels and content == "image":
        is_inception = _has_usual_record(file, table) and not annotations.columns
    _refuse_several_labels(file, table, is_inception=is_inception)
    if not has_labels:
        _refuse_keys_of_labels(file, is_inception=is_inception)
    first_label = _first_label(file, shared, is_inception=is_inception)
    declared = given_classes(file, root, first_label)
    if source is not None:
        labelled, divisions, notes = _divide_labelled(
            file, inputs, annotations, root, source, declared, first_label
        )
    else:
        labelled, divisions, notes = _divide_folders(
            file, inputs, annotations, root, declared, first_label, in_folders=in_folders
        )
    labelled = replace(labelled, classes=name_classes(file, root, labelled.classes))
    labelled = _with_shared_numbers(file, labelled, shared, is_inception=is_inception)
    if file.recipe.stratified:
        divisions = stratify(file, annotations.listing, divisions[0], labelled.labels)
    return _DividedFiles(
        file, inputs, content, annotations, divisions, labelled, is_inception, notes
    )


def _divide_labelled(  # noqa: PLR0913 - what load has found so far
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    source: tuple[LabelTable, AnyPath],
    declared: Classes | None,
    first_label: int,
) -> tuple[Labelled, list[Division], list[str]]:
    """The labels that a table gives, the splits, and notes on them."""
    listing = annotations.listing
    notes: list[str] = []
    if source[0].splits is not None:
        labelled = label_by_table(file, inputs, listing, source, declared, first_label)
        divisions = divisions_of_table(file, labelled)
    else:
        divisions, notes = divide(file, inputs, listing, root, 0, annotations.divided)
        labelled = label_by_table(file, inputs, listing, source, declared, first_label)
    divisions = [_without_left_out(division, labelled) for division in divisions]
    return labelled, divisions, notes


def _divide_folders(  # noqa: PLR0913 - what load has found so far
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    declared: Classes | None,
    first_label: int,
    *,
    in_folders: bool,
) -> tuple[Labelled, list[Division], list[str]]:
    """The labels by folder, or none; the splits, and notes on them."""
    listing = annotations.listing
    divisions, notes = divide(file, inputs, listing, root, int(in_folders), annotations.divided)
    if not in_folders:
        return Labelled(Classes(), np.zeros(len(listing), np.int8)), divisions, notes
    labelled = label_by_folder(file, inputs, listing, divisions, declared, first_label)
    divisions = [_labelled_rows(division, labelled) for division in divisions]
    return labelled, divisions, notes


def _are_in_class_folders(file: RecipeFile, inputs: Inputs, listing: Catalog) -> bool:
    """Whether the folders of files are classes: always in a source of folders; in a tar if all
    files are in folders, and these are no folder of images alone.
    """
    if not inputs.has_folders:
        return False
    if file.recipe.source and file.recipe.source.kind == "folders":
        return True
    if not all("/" in name for name in listing.names):
        return False
    return not are_in_an_image_folder(listing.names)


def _refuse_several_labels(
    file: RecipeFile, table: LabelTable | None, *, is_inception: bool
) -> None:
    """Raise UsageError if files have several labels, where each must have one."""
    if table is None or not (is_inception or file.recipe.stratified) or not table.is_several:
        return
    key = "record" if is_inception else "stratified"
    raise file.fault((key,), "files have several labels", "expected one label each, or no such key")


def _refuse_keys_of_labels(file: RecipeFile, *, is_inception: bool) -> None:
    """Raise UsageError for the first key that requires labels, where there are none."""
    keys = [name for name in _OF_LABELS if getattr(file.recipe, name) not in (None, False)]
    if is_inception:
        keys.insert(0, "record")
    if keys:
        expected = "expected class folders, or a file that `labels` names"
        raise file.fault((keys[0],), "there are no labels", expected)


def _with_shared_numbers(
    file: RecipeFile, labelled: Labelled, shared: SharedNumbering, *, is_inception: bool
) -> Labelled:
    """The labels with the numbers that the sets of DATA_DIR share.

    Raises:
        InputError: a class, or a number, means something else in another set.
        UsageError: records in Inception's layout would lack their labels.
    """
    classes = shared.settle(file, labelled.classes)
    if is_inception and labelled.unlabelled:
        count = number_of(labelled.unlabelled, "file has", "files have")
        raise file.fault(
            ("record",),
            f"{count} no label",
            "expected one each: Inception's records have no place for none",
            "take `record` out, or leave such files out with labels: {file: ..., unlabelled: skip}",
        )
    notes = note_on_first(file, classes) if shared.first_label is None else []
    return replace(labelled, classes=classes, notes=(*labelled.notes, *notes))


_OF_LABELS = ("classes", "class_names", "first_label", "stratified")
"""The keys of a recipe that say more of labels."""


def _has_usual_record(file: RecipeFile, table: LabelTable | None) -> bool:
    """Whether images have a label each, as in Inception's records, and nothing else."""
    recipe = file.recipe
    is_of_arrays = recipe.source is not None and recipe.source.kind == "arrays"
    if recipe.mask or recipe.boxes or recipe.keep or is_of_arrays:
        return False
    if table is None:
        return True
    return not (table.columns or table.is_several or may_lack_labels(file, table))


def _first_label(file: RecipeFile, shared: SharedNumbering, *, is_inception: bool) -> int:
    """The label of the first class: of the recipe, otherwise of the other sets;
    or 1 in Inception's layout, where 0 is background.
    """
    if file.recipe.first_label is not None:
        return file.recipe.first_label
    return int(is_inception) if shared.first_label is None else shared.first_label


def _without_left_out(division: Division, labelled: Labelled) -> Division:
    labelled_division = _labelled_rows(division, labelled)
    if not len(labelled_division.rows):
        raise InputError(
            f"no file of split {division.name} has a label",
            f"expected some in {labelled.table_path}",
        )
    return labelled_division


def _labelled_rows(division: Division, labelled: Labelled) -> Division:
    """A division without the files that have no label."""
    has_label = labelled.labels[places_of(division.rows)] >= 0
    if has_label.all():
        return division
    return replace(division, rows=np.asarray(division.rows, np.int64)[has_label])


# content ------------------------------------------------------------------------------------------


def _decide(file: RecipeFile, listing: Catalog) -> Content:
    """The content of the files: from the recipe, or arrays if all have such endings, or numbers if
    it rescales.

    Raises:
        UsageError: the recipe has keys for another content.
    """
    recipe = file.recipe
    if recipe.content is not None:
        return recipe.content
    if recipe.array is None and not _are_arrays(listing.names.endings()):
        return "image" if recipe.min_val is None else "pixels"
    key = rules.said_of_images(file)
    if key is None and recipe.record == "inception":
        key = "record"
    if key is not None:
        raise file.fault((key,), "the files are arrays", "expected images, or no such key")
    return "array"


def _are_arrays(endings: Collection[str]) -> bool:
    """Whether some files are arrays by their endings, and none is an image."""
    has_arrays = any(is_of("array", ending) for ending in endings)
    return has_arrays and not any(is_of("image", ending) for ending in endings)


def _keep(
    file: RecipeFile, inputs: Inputs, content: Content, *, on_damaged: OnDamaged
) -> tuple[Catalog, list[str]]:
    """The files of this content, and what to tell the user of the others.

    A file of a folder is of this content if its name says so, otherwise if its first bytes do.
    Other files in folders and tars are left out, except images of a format that can't be read:
    those are among the ``obstacles`` of the inputs. With ``on_damaged: skip`` they stay among the
    files, to be set aside one by one as damaged. A pattern or a manifest that names another file is
    wrong.

    Raises:
        InputError: such a file is named, or nothing is left.
    """
    listing = inputs.listing
    names = listing.names
    if all(is_of(content, ending) for ending in names.endings()):
        return listing, []
    fits = names.chosen(functools.partial(is_of, content))
    is_unreadable = names.chosen(functools.partial(is_odd, content))
    unknown_rows = np.flatnonzero(~(fits | is_unreadable)).tolist()
    known_rows = _known_by_content(inputs, unknown_rows, content)
    fits[known_rows] = True
    unreadable = names.picked(np.flatnonzero(is_unreadable))
    foreign = names.picked(np.flatnonzero(~(fits | is_unreadable)))
    rows = np.flatnonzero(fits)
    is_refused = bool(unreadable) and on_damaged == "refuse"
    is_named = bool(foreign) and not inputs.has_folders
    if is_refused or is_named or not len(rows):
        may_skip = bool(unreadable) and len(rows) > 0
        error = _unreadable_files(file, inputs, content, unreadable or foreign, may_skip=may_skip)
        if not len(rows) or not inputs.has_folders:
            raise error
        inputs.obstacles.append(error)
    elif unreadable:
        rows = np.flatnonzero(fits | is_unreadable)
    notes = []
    if known_rows:
        count = number_of(len(known_rows), "file is", "files are")
        known_names = listed(names[row] for row in known_rows)
        notes.append(f"{count} of this content by the first bytes: {known_names}")
    if foreign:
        notes.append(_note_on_foreign(foreign, _noun_of(content)))
    return listing.picked(rows), notes


def _noun_of(content: Content) -> str:
    return "array" if content == "array" else "image"


def _unreadable_files(
    file: RecipeFile, inputs: Inputs, content: Content, names: Sequence[str], *, may_skip: bool
) -> InputError:
    """The error for files that can't be read as this content."""
    noun = _noun_of(content)
    count = number_of(
        len(names), f"file can't be read as an {noun}", f"files can't be read as {noun}s"
    )
    endings = ", ".join(ENDINGS[content])
    hint = f"convert or remove them, or say in {file.path} what the content is"
    if may_skip:
        hint += "; on_damaged: skip, or --on-damaged skip, leaves them out"
    return InputError(
        f"{inputs.origin}: {count}, {names[0]} first ({counted(names)})",
        f"expected names that end in {endings}, since content is {content}",
        hint,
    )


def _note_on_foreign(names: Sequence[str], noun: str) -> str:
    """The note on files of other content."""
    count = number_of(
        len(names), f"file that is not an {noun} is", f"files that are not {noun}s are"
    )
    types = f" ({counted(names)})" if len(names) > 3 else ""
    return f"{count} left out: {listed(names)}{types}"


def _known_by_content(inputs: Inputs, rows: list[int], content: Content) -> list[int]:
    """The rows whose files are of this content by their first bytes;
    files in archives are known by their names.
    """
    listing = inputs.listing
    if not rows or any(each.read_order != "alone" for each in listing.containers):
        return []
    folder = Path(str(listing.containers[0].path))
    kinds = kinds_by_content(folder, (listing.names[row] for row in rows))
    return [row for row in rows if fits(content, kinds.get(listing.names[row], ""))]


def _refuse_several_arrays(file: RecipeFile, listing: Catalog) -> None:
    """Raise UsageError if the first .npz holds several arrays: the recipe must name one."""
    row = next(
        (row for row, name in enumerate(listing.names) if name.lower().endswith(".npz")), None
    )
    names = [] if row is None else names_in_npz(listing.read(row, Reader()))
    if row is not None and len(names) > 1:
        what = f"{listing.names[row]} holds {len(names)} arrays: {listed(names, 5)}"
        hint = (
            f"write array: {names[0]} in the recipe; a file of many examples must be saved as a "
            "file for each"
        )
        raise file.fault((), what, "expected the name of one", hint)
