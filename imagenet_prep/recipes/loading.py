"""A recipe -> its data set: for each split a catalog, a recorder,
and how many shards of which name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.model import Engine, OnDamaged, Progress, Silent
from imagenet_prep.recipes import columns as cols
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import Annotations, annotate, annotate_rows
from imagenet_prep.recipes.class_names import name_classes
from imagenet_prep.recipes.column_splits import divisions_of_table
from imagenet_prep.recipes.columns import ENDINGS, Content, is_odd, is_of
from imagenet_prep.recipes.divisions import Division, divide, missing_classes, stratify
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labels import (
    Classes,
    Labelled,
    given_classes,
    label_by_folder,
    label_by_table,
    may_lack_labels,
    note_on_first,
    read_table,
)
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
from imagenet_prep.storage.layout import MAX_SHARDS, Layout
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
    layout: Layout | None = None,
    on_damaged: OnDamaged | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> RecipeDataset:
    """List a recipe's files, and plan what is to be made of them. Nothing is written.

    ``recipe`` is the file, or what ``read`` made of it, but not one of ImageNet
    (``rules.is_imagenet``). Relative paths start at ``root``; if None, at DATAPATH of the
    environment, or the folder of the recipe. ``layout`` is where the shards go, for a manifest that
    can't be made below ``root``, and for the classes of the sets that are there; ``overwrite``:
    this set is made again. ``on_damaged`` is the recipe's by default.

    Raises:
        UsageError: the recipe is wrong; the error names file, line and key.
        InputError: an input is missing or damaged, or contradicts the recipe; the error names file,
            line or path.
    """
    file = recipe if isinstance(recipe, RecipeFile) else read(recipe)
    on_damaged = on_damaged or file.recipe.on_damaged
    layout = replace(layout, set_name=rules.prefix_of(file)[1]) if layout else None
    folder = data_root(file, local_path(root) if root else None)
    (progress or Silent()).note(f"listing the files of {file.path}")
    inputs = find_inputs(file, folder, engine, layout=layout, is_raw=root is not None)
    content = _decide(file, inputs.listing)
    listing, notes = _keep(file, inputs, content, on_damaged=on_damaged)
    shared = SharedNumbering.find(layout, grows=file.recipe.grow, overwrite=overwrite)
    annotations = _annotated(file, inputs, listing, folder, content, shared)
    try:
        found = _sort(file, inputs, annotations, folder, content, shared)
    except InputError as error:
        raise _refused(inputs, file, error) from error
    _refuse_obstacles(inputs, file)
    found.check_expected()
    return found.planned(
        (*notes, *annotations.notes, *found.all_notes(folder)), on_damaged=on_damaged
    )


def _refuse_obstacles(inputs: Inputs, file: RecipeFile) -> None:
    """Raise one error for all obstacles, or collect each."""
    if inputs.obstacles and collected() is None:
        raise all_of(inputs.obstacles)
    for obstacle in inputs.obstacles:
        refuse(obstacle, subject=file.path.name)


def _refused(inputs: Inputs, file: RecipeFile, error: InputError) -> InputError:
    """The error that ends a listing, with the obstacles unless they are collected."""
    if collected() is None:
        return all_of([*inputs.obstacles, error])
    _refuse_obstacles(inputs, file)
    return error


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
    key = ("boxes",) if boxes else ("mask",) if mask else ("source",)
    if content != "image":
        raise file.fault(key, f"content is {content}", "expected it with images only")
    roots = Roots(inputs.base, root, file.recipe.strip or "")
    if marks:
        _refuse_beside_marks(file)
        found = annotate_rows(marks, boxes, listing, roots, file.recipe.boxes_outside)
    else:
        found = annotate(boxes, mask, listing, roots, file.recipe.boxes_outside)
    shared.number_boxes(file, found)
    if inputs.divided and len(found.listing) < len(listing):
        raise file.fault(
            key, "images would be skipped", "expected manifests of annotated images alone"
        )
    return found


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


class _Sorted(Struct, frozen=True):
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

    def planned(self, notes: tuple[str, ...], *, on_damaged: OnDamaged) -> RecipeDataset:
        """The data set of these files."""
        file, labelled, listing = self.file, self.labelled, self.annotations.listing
        features, values = cols.extra_columns(
            file, self.is_inception, labelled, self.content, self.annotations
        )
        settings = settings_of(file, features, self.content, listing, labelled.classes)
        expected = (file.recipe.expected or {}).items()
        return RecipeDataset(
            path=file.path,
            splits=tuple(self._plans(features, values)),
            on_damaged=on_damaged,
            settings={**settings, **self.annotations.settings},
            features=inception.PROMISE if features is None else cols.promise(features),
            classes=labelled.classes,
            notes=notes,
            warnings=tuple(
                missing_classes({each.name: self._classes_in(each) for each in self.divisions})
            ),
            grows=file.recipe.grow,
            skipped=len(self.inputs.listing) - sum(len(each.rows) for each in self.divisions),
            manifest=self.inputs.manifest,
            expected={
                self._prefix(key) if isinstance(value, dict) else key: value
                for key, value in expected
            },
            changed_boxes=self.annotations.changed_boxes,
            has_labels=labelled.unlabelled > 0,
        )

    def _prefix(self, split: str) -> str:
        """The set's prefix itself for a single split, prefix and split for several;
        without a prefix the split.
        """
        prefix = rules.prefix_of(self.file)[1]
        return (prefix if len(self.divisions) == 1 else f"{prefix}-{split}") if prefix else split

    def _plans(
        self, features: cols.Features, values: Mapping[str, list[Any]]
    ) -> Iterator[SplitPlan]:
        counts, recipe, origin = self._shard_counts(), self.file.recipe, self.inputs.origin
        for each in self.divisions:
            # a manifest_file was shuffled when it was made; any other one keeps its order unless
            # the recipe says more
            asked = recipe.shuffle if "shuffle" in self.file.value else not each.is_ordered
            shuffle, masks = recipe.manifest_file is None and asked, self.annotations.masks
            catalog = self._catalog(each, values)
            recorder = make_recorder(
                self.file, features, self.content, self.labelled, each.name, masks
            )
            yield SplitPlan(
                each.name, catalog, origin, counts[each.name], shuffle, recipe.seed, recorder
            )

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
        file, images = self.file, {each.name: len(each.rows) for each in self.divisions}
        classes = {each.name: self._classes_in(each) for each in self.divisions}
        for split, name, count, found in rules.totals_in(
            file.recipe.expected or {}, images, classes
        ):
            if split and split not in images:
                raise file.fault(
                    ("expected", split), "no such split", f"expected one of {', '.join(images)}"
                )
            if found != count:
                where = f" in {split}" if split else ""
                key = ("expected", split, name) if split else ("expected", name)
                what = f"{file.place(key)}: {count:,} {name} expected, {found:,} found{where}"
                hint = "get what is missing, or correct `expected` in the recipe"
                error = InputError(what, "expected the whole set", hint)
                refuse(error, rules.kind_of_total(name, count, found), split or name)

    def all_notes(self, root: Path) -> Iterator[str]:
        """The notes on images that become JPEGs, splits and labels,
        links out of the data, and a manifest elsewhere.
        """
        names, recipe = self.annotations.listing.names, self.file.recipe
        is_kept = self.content != "image" or recipe.keep or recipe.reencode is not None
        if not is_kept and cols.becoming_jpeg(names.endings(), self.is_inception):
            those = (names[row] for each in self.divisions for row in each.rows)
            yield f"{cols.becoming_jpeg(those, self.is_inception)} become JPEGs"
        yield from (*self.inputs.notes, *self.notes, *self.labelled.notes)
        if links := self.inputs.remarks.links:
            files = number_of(len(links), "file is a link that leads", "files are links that lead")
            yield f"{files} out of the folder of the data: {listed(links)}"
        made = self.inputs.manifest
        if made is not None and not str(made.path).startswith(f"{root}/"):
            yield f"the manifest is made as {made.path}"

    def _shard_counts(self) -> dict[str, int]:
        """How many shards each split gets: as the recipe says, or as many as its files' bytes fill.

        Raises:
            UsageError: no number for a split, or so many shards that most would be empty.
        """
        file, sizes = self.file, {each.name: len(each.rows) for each in self.divisions}
        said, size = rules.shard_counts(file), rules.shard_size(file) or 1
        counts = dict(said) if isinstance(said, Mapping) else dict.fromkeys(sizes, said or 0)
        if said is None:
            filled = {
                each.name: -(-self.annotations.listing.size(each.rows) // size)
                for each in self.divisions
            }
            counts = {
                name: max(1, min(filled[name], files, MAX_SHARDS)) for name, files in sizes.items()
            }
        if wrong := sorted(counts.keys() ^ sizes.keys()):
            what = (
                f"there is no split {wrong[0]}"
                if wrong[0] in counts
                else f"no number for split {wrong[0]}"
            )
            raise file.fault(
                ("shards", wrong[0]), what, f"expected a number for each of {', '.join(sizes)}"
            )
        for name, files in sizes.items():
            if counts[name] > (most := order.most_shards(files)):
                key = next(
                    key
                    for key in (("shards", name), ("shards",), ("num_shards",))
                    if key in file.lines
                )
                where = f" in split {name}" if name != ONLY else ""
                what = f"{number_of(counts[name], 'shard')} of {number_of(files, 'file')}{where}"
                raise file.fault(key, what, f"expected at most {most:,}")
        return counts


_OF_LABELS = ("classes", "class_names", "first_label", "stratified")
"""The keys of a recipe that say more of labels."""


def _sort(
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    content: Content,
    shared: SharedNumbering,
) -> _Sorted:
    listing = annotations.listing
    table = read_table(file, root) or inputs.table
    is_folders = bool(file.recipe.source and file.recipe.source.kind == "folders")
    in_folders = (
        table is None and inputs.has_folders
    )  # always in a source of folders, in a tar if all files are
    in_folders = in_folders and (is_folders or all("/" in name for name in listing.names))
    in_folders = in_folders and (is_folders or not are_in_an_image_folder(listing.names))
    has_labels = in_folders or (table is not None and table[0].labels is not None)
    is_inception = file.recipe.record == "inception"
    if file.recipe.record is None:
        is_inception = (
            has_labels
            and content == "image"
            and _has_usual_record(file, table[0] if table else None)
        )
        is_inception = is_inception and not annotations.columns
    for key, is_wrong in (("record", is_inception), ("stratified", file.recipe.stratified)):
        if is_wrong and table is not None and table[0].is_several:
            raise file.fault(
                (key,), "files have several labels", "expected one label each, or no such key"
            )
    for key, is_given in (
        ("record", is_inception),
        *((name, getattr(file.recipe, name) not in (None, False)) for name in _OF_LABELS),
    ):
        if is_given and not has_labels:
            raise file.fault(
                (key,),
                "there are no labels",
                "expected class folders, or a file that `labels` names",
            )
    first = _first_label(file, shared, is_inception=is_inception)
    given = given_classes(file, root, first)
    notes: list[str] = []
    if table is not None and table[0].splits is not None:
        labelled = label_by_table(file, inputs, listing, table, given, first)
        divisions = divisions_of_table(file, labelled)
    else:
        labelled = None
        divisions, notes = divide(file, inputs, listing, root, int(in_folders), annotations.divided)
    if table is not None:
        labelled = labelled or label_by_table(file, inputs, listing, table, given, first)
        divisions = [_without_left_out(each, labelled) for each in divisions]
    elif in_folders:
        labelled = label_by_folder(file, inputs, listing, divisions, given, first)
        divisions = [
            _labelled_rows(division, labelled) for division in divisions
        ]  # the others are obstacles
    else:
        labelled = Labelled(Classes(), np.zeros(len(listing), np.int8))
    labelled = replace(labelled, classes=name_classes(file, root, labelled.classes))
    labelled = _settled(file, labelled, shared, is_inception=is_inception)
    if file.recipe.stratified:
        divisions = stratify(file, listing, divisions[0], labelled.labels)
    return _Sorted(file, inputs, content, annotations, divisions, labelled, is_inception, notes)


def _settled(
    file: RecipeFile, labelled: Labelled, shared: SharedNumbering, *, is_inception: bool
) -> Labelled:
    """The labels with the numbers that the sets of DATA_DIR share.

    Raises:
        InputError: a class, or a number, means something else in another set.
        UsageError: records in Inception's layout would lack their labels.
    """
    classes = shared.settle(file, labelled.classes)
    if is_inception and labelled.unlabelled:
        hint = (
            "take `record` out, or leave such files out with labels: {file: ..., unlabelled: skip}"
        )
        what = f"{number_of(labelled.unlabelled, 'file has', 'files have')} no label"
        raise file.fault(
            ("record",), what, "expected one each: Inception's records have no place for none", hint
        )
    notes = note_on_first(file, classes) if shared.first_label is None else []
    return replace(labelled, classes=classes, notes=(*labelled.notes, *notes))


def _has_usual_record(file: RecipeFile, table: LabelTable | None) -> bool:
    """Whether images have a label each, as in Inception's records, and nothing else."""
    recipe = file.recipe
    if (
        recipe.mask
        or recipe.boxes
        or recipe.keep
        or (recipe.source and recipe.source.kind == "arrays")
    ):
        return False
    return table is None or not (table.columns or table.is_several or may_lack_labels(file, table))


def _first_label(file: RecipeFile, shared: SharedNumbering, *, is_inception: bool) -> int:
    """The label of the first class: of the recipe, otherwise of the other sets;
    or 1 in Inception's layout.
    """
    if file.recipe.first_label is not None:
        return file.recipe.first_label
    return (
        int(is_inception) if shared.first_label is None else shared.first_label
    )  # 0 is background


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
    endings = listing.names.endings()
    has_arrays = any(is_of("array", each) for each in endings)
    if recipe.array is not None or (
        has_arrays and not any(is_of("image", each) for each in endings)
    ):
        key = rules.said_of_images(file) or ("record" if recipe.record == "inception" else None)
        if key is not None:
            raise file.fault((key,), "the files are arrays", "expected images, or no such key")
        return "array"
    return "image" if recipe.min_val is None else "pixels"


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
    listing, noun = inputs.listing, "array" if content == "array" else "image"
    if all(is_of(content, each) for each in listing.names.endings()):
        return listing, []
    fit, are_odd = (
        listing.names.chosen(functools.partial(accept, content)) for accept in (is_of, is_odd)
    )
    found = _known_by_content(inputs, np.flatnonzero(~(fit | are_odd)).tolist(), content)
    fit[found] = True
    odd, others = (
        listing.names.picked(np.flatnonzero(each)) for each in (are_odd, ~(fit | are_odd))
    )
    rows = np.flatnonzero(fit)
    if (odd and on_damaged == "refuse") or not len(rows) or (others and not inputs.has_folders):
        wrong = odd or others
        count = number_of(
            len(wrong), f"file can't be read as an {noun}", f"files can't be read as {noun}s"
        )
        expected = (
            f"expected names that end in {', '.join(ENDINGS[content])}, since content is {content}"
        )
        hint = f"convert or remove them, or say in {file.path} what the content is"
        hint += (
            "; on_damaged: skip, or --on-damaged skip, leaves them out" if odd and len(rows) else ""
        )
        error = InputError(
            f"{inputs.origin}: {count}, {wrong[0]} first ({counted(wrong)})", expected, hint
        )
        if not len(rows) or not inputs.has_folders:
            raise error
        inputs.obstacles.append(error)
    elif odd:
        rows = np.flatnonzero(fit | are_odd)
    notes = []
    if found:
        names = listed(listing.names[row] for row in found)
        notes.append(
            f"{number_of(len(found), 'file is', 'files are')} of this content by the first "
            f"bytes: {names}"
        )
    if others:
        left = number_of(
            len(others), f"file that is not an {noun} is", f"files that are not {noun}s are"
        )
        notes.append(
            f"{left} left out: {listed(others)}"
            + (f" ({counted(others)})" if len(others) > 3 else "")
        )
    return listing.picked(rows), notes


def _known_by_content(inputs: Inputs, rows: list[int], content: Content) -> list[int]:
    """The rows whose files are of this content by their first bytes;
    files in archives are known by their names.
    """
    from imagenet_prep.recipes.inspection import fits, kinds_by_content

    listing = inputs.listing
    if not rows or any(each.reading != "alone" for each in listing.containers):
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
