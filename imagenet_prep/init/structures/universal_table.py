"""A table with a row for each image, as Hugging Face's imagefolder has it:
metadata.csv, .jsonl or .parquet.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.images import format_of, is_npy
from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection, main_content
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    POSSIBLE,
    Choice,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.split_options import fault_of_other_values
from imagenet_prep.model import Engine
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.misread_folders import in_flow
from imagenet_prep.recipes.path_parts import has_ending, stem_of
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import place_in_recipe
from imagenet_prep.recipes.row_files import RowListing, find_images, find_prefix
from imagenet_prep.recipes.row_source import FILES, MASKS, Rows
from imagenet_prep.recipes.row_tables import (
    ENDINGS,
    PARQUET,
    column_names,
    is_table,
    read_tables,
    unusual_columns,
)
from imagenet_prep.recipes.sample_sources import list_samples
from imagenet_prep.recipes.schema import Recipe, Source
from imagenet_prep.recipes.splits import place_of_split
from imagenet_prep.sources.names import text_of
from imagenet_prep.sources.parquets import first_heads, has_images
from imagenet_prep.text import either, listed, number_of, one_of

_METADATA = "metadata"
_COLUMN = re.compile(r"(.*_)?file_name")


def recognise(inspection: Inspection) -> Interpretation | None:
    """Tables called metadata, or as splits are, or in Parquet,
    that name images in a column file_name.
    """
    groups = _tables_in(inspection)
    if not groups:
        return None
    tables: list[str] = []
    for names in groups.values():
        tables += names
    meaning = f"{listed(tables)} has a row for each image"
    folder = Path(os.path.abspath(inspection.folder))  # noqa: PTH100 - links stay, as in names
    paths: dict[str, list[Path]] = {}
    for split, names in groups.items():
        paths[split] = [folder / name for name in names]
    options = inspection.options
    source, recipe = _settings_of(options)
    rows: Rows | None = None
    try:
        rows = read_tables(source, paths, _hint_on_column(options, inspection.folder))
        if _are_values_of_rows(options.splits, rows):
            recipe = replace(recipe, splits=splits_by_value(options.splits))
        recipe_file = _as_file(folder, recipe)
        images = find_images(recipe_file, rows, folder, inspection.engine)
    except InputError as error:
        is_meant = _says_more(paths) or _names_most(inspection, folder, rows)
        certainty = CERTAIN + 1 if is_meant else POSSIBLE  # labels may be readable otherwise
        fault = _with_command(error, rows, options, inspection.folder)
        return Interpretation(certainty, (), meaning, faults=(fault,), annotation_files=tables)
    image_names = _names_from(folder, images)
    bare = [name for name in inspection.items if name not in image_names]
    archives = _archives_of(inspection, image_names)
    interpretation = _interpret(inspection, tables, rows, images, bare)
    content = inspection.content or "image"
    proposal = _propose(images, groups, source, recipe, content)
    return replace(
        interpretation,
        meaning=meaning,
        proposal=proposal,
        containers=[*archives, *inspection.items] if archives else (),
    )


def _are_values_of_rows(splits: Mapping[str, str], rows: Rows) -> bool:
    """Whether the splits that the user names are values of the column of splits."""
    if not splits:
        return False
    splits_of_rows = {image.split for image in rows.images}
    return splits_of_rows.issuperset(splits.values())


def _interpret(
    inspection: Inspection,
    tables: Sequence[str],
    rows: Rows,
    images: RowListing,
    bare: Sequence[str],
) -> Interpretation:
    """The images of tables, except for their recipe; ``bare`` are those in no row."""
    labels = [image.label for image in images.images if image.label is not None]
    labelled, class_names = len(labels), set(map(str, labels))
    if rows.roles.label is None:
        labelled, class_names = _count_by_boxes(images)
    certainty = _certainty(inspection, rows, len(bare))
    evidence = _evidence(inspection, tables, rows, len(bare))
    evidence_of_marks = _evidence_of_marks(images)
    losses: list[InputError] = []
    if bare:
        losses.append(_unnamed(inspection, tables, bare))
    return Interpretation(
        certainty,
        (evidence, *evidence_of_marks),
        "",
        annotation_files=tables,
        is_labelled=rows.roles.label is not None,
        losses=losses,
        labelled=labelled,
        classes=len(class_names),
    )


def _count_by_boxes(images: RowListing) -> tuple[int, set[str]]:
    """The number of images with boxes, and the classes of all boxes."""
    labelled = 0
    class_names: set[str] = set()
    for image in images.marks.images.values():
        labelled += bool(image.objects)
        class_names.update(str(marked.label) for marked, _ in image.objects)
    return labelled, class_names


def _names_from(folder: Path, images: RowListing) -> set[str]:
    """The images of a listing, by their paths from a folder."""
    path_from_folder = os.path.relpath(images.base, folder)
    lead = Path(path_from_folder).as_posix()
    return {posixpath.normpath(f"{lead}/{name}") for name in images.listing.names}


def _archives_of(inspection: Inspection, names: Collection[str]) -> list[str]:
    """The archives that hold some of the images."""
    archives: list[str] = []
    for archive in inspection.archives:
        lead = f"{archive}/"
        if any(name.startswith(lead) for name in names):
            archives.append(archive)
    return archives


def choose_table(table: Path, engine: Engine, options: InitOptions) -> Choice:
    """The recipe of one table.

    Args:
        table: its path.
        engine: lists archives.
        options: the options of init.

    Raises:
        InputError: it names no images, or one that is not there; the error has its line.
        UsageError: a split that the user names is no value of a column.
    """
    path = Path(os.path.abspath(table))  # noqa: PTH100 - links stay, as in names
    if has_ending(path.name, PARQUET) and has_images(path):
        return _choose_parquet(path, engine, options)
    split = _split_of(path.name)
    source, recipe = _settings_of(options)
    splits = splits_by_value(options.splits)
    recipe = replace(recipe, splits=splits or None)
    candidates = unusual_columns(path)
    if source.image is None and len(candidates) == 1:
        source = replace(source, image=candidates[0])
    rows = read_tables(source, {split: [path]}, _hint_on_column(options, table, candidates))
    _check_splits(table, rows, options)
    recipe_file = _as_file(path, recipe)
    try:
        images = find_images(recipe_file, rows, path.parent, engine)
    except InputError as error:
        raise _with_command(error, rows, options, table) from error
    count = number_of(len(images.images), "image")
    evidence = f"{path.name} names {count} in its column `{rows.roles.image}`"
    content = main_content(images.listing.names) or "image"
    groups = {split: [path.name]}
    proposal = _propose(images, groups, source, recipe, content)
    evidence_of_marks = _evidence_of_marks(images)
    notes = _notes_on_others(path, options.output or Path(path.name))
    return Choice("universal-table", (evidence, *evidence_of_marks), notes, proposal)


def _check_splits(table: Path, rows: Rows, options: InitOptions) -> None:
    """Raise UsageError if a split that the user names is no value of a column, or a value is
    that of none.
    """
    values = sorted({image.split for image in rows.images if image.split})
    for split, value in options.splits.items():
        if value not in values:
            problem = (
                f"--split {split}={value}: no column of splits of {table} has the value {value}"
            )
            expected = f"expected {one_of(values)}" if values else ""
            hint = Hint("to run init without --split: ", options.command(table, splits={}))
            raise UsageError(problem, expected, hint)
    other_values = [value for value in values if value not in options.splits.values()]
    if options.splits and other_values:
        column = f"column of splits of {table}"
        raise fault_of_other_values(column, other_values, options, table)


def _choose_parquet(path: Path, engine: Engine, options: InitOptions) -> Choice:
    """The recipe of a Parquet file that holds images.

    Raises:
        InputError: its bytes are no images.
        UsageError: an option is about paths, and the file has none.
    """
    _refuse_other_bytes(path)
    for option, value in (("image", options.image), ("strip", options.strip)):
        if value:
            problem = f"--{option} is for paths, and {path.name} holds the images themselves"
            hint = f"leave out --{option}"
            raise UsageError(problem, "expected a table of the paths of images", hint)
    samples, _ = list_samples("parquet", {"": [path]}, engine)
    names = list(samples.listing.names)
    evidence = f"{path.name} holds {number_of(len(names), 'image')}"
    paths = {"": [path.name]}
    label_key: dict[str, str | bool] = {}
    if options.label is not None:
        label_key["label"] = options.label
    proposal = Proposal("parquet", "image", names, paths=paths, options=label_key)
    return Choice("parquet", (evidence,), (), proposal)


def _refuse_other_bytes(path: Path) -> None:
    """Raise InputError for a Parquet file of bytes that don't start as images do."""
    column, heads = first_heads(path)
    if heads and not any(is_npy(head) or format_of(head) for head in heads):
        raise InputError(
            f"{path}: the first values in the column {column} are not images in a known format",
            f"expected {', '.join(FORMATS)}",
            f"convert these images to PNG or JPEG; or, if the column {column} holds other data, "
            "write the file again without it, and init reads it as a table",
        )


def _settings_of(options: InitOptions) -> tuple[Source, Recipe]:
    """The columns and the beginning of paths that the user names."""
    source = Source(label=options.label, image=options.image)
    recipe = Recipe(strip=options.strip)
    return source, recipe


def _hint_on_column(
    options: InitOptions, place: Path, candidates: Sequence[str] = ("COLUMN",)
) -> Hint:
    """How to name the column of the images, of which no usual one was found."""
    column = next(iter(candidates), "COLUMN")
    return Hint("name the column of the images: ", options.command(place, image=column))


def _with_command(
    error: InputError, rows: Rows | None, options: InitOptions, place: Path
) -> InputError:
    """The error for images that are not there,
    with the command that takes another machine's folders off.
    """
    if rows is None:
        return error
    prefix, count = find_prefix(rows.images)
    if not prefix or prefix == options.strip:
        return error
    counts = f"{count:,} of {number_of(len(rows.images), 'image')}"
    command = options.command(place, strip=prefix)
    choice = Hint(f"  {counts}, with {prefix} removed from their paths: ", command)
    bare_error = InputError(error.what, error.detail)
    return bare_error.with_choices([choice])


def _notes_on_others(path: Path, recipe: Path) -> tuple[str, ...]:
    """The note on tables of other splits next to one of a split, with their paths in the recipe."""
    split = _split_of(path.name)
    if not split:
        return ()
    names: list[str] = []
    for other in path.parent.iterdir():
        if other != path and is_table(other) and _split_of(other.name):
            names.append(other.name)
    if not names:
        return ()
    names.sort()
    tables: dict[str, str] = {}
    for name in (path.name, *names):
        tables.setdefault(_split_of(name), place_in_recipe(path.parent / name, recipe))
    source = in_flow({"source": {"table": tables}})[1:-1]
    note = f"{listed(names)}: not read; in a recipe, {source} takes a table for each split"
    return (note,)


def _names_most(inspection: Inspection, folder: Path, rows: Rows | None) -> bool:
    """Whether most rows name a file of the folder, by paths that start at their tables."""
    if rows is None:
        return False
    names = set(inspection.listing.names)
    lead = text_of(str(folder))
    count = 0
    for image in rows.images:
        path = f"{image.folder}/{image.file_name}"
        count += posixpath.relpath(path, lead) in names
    return 2 * count >= len(rows.images)


def _says_more(groups: Mapping[str, Sequence[Path]]) -> bool:
    """Whether a table has boxes or masks, which no labels file can have."""
    columns: set[str] = set()
    for paths in groups.values():
        for path in paths:
            columns.update(column_names(path))
    return not columns.isdisjoint(("objects", "xmin", *MASKS))


def splits_by_value(splits: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """A recipe's ``splits`` for splits that are values of a column."""
    return {split: {"value": value} for split, value in splits.items()}


def _as_file(path: Path, recipe: Recipe) -> RecipeFile:
    """A recipe of a table, before it is written."""
    source = Source(table=path.name)
    recipe_of_table = replace(recipe, source=source)
    return RecipeFile(path, recipe_of_table, {(): 1})


def _tables_in(inspection: Inspection) -> dict[str, list[str]]:
    """The tables of a folder by split ("": of none); none if only some are of a split."""
    groups: dict[str, list[str]] = {}
    for name in _likely_tables(inspection.listing.names):
        if _names_images(inspection.folder, name):
            split = _split_of(name)
            groups.setdefault(split, []).append(name)
    if "" in groups and len(groups) > 1:
        return {}
    return {split: groups[split] for split in sorted(groups, key=place_of_split)}


def _likely_tables(names: Iterable[str]) -> list[str]:
    """The tables called metadata; if there are none, those in no folder."""
    tables = [name for name in names if has_ending(name, ENDINGS)]
    metadata = [name for name in tables if stem_of(name).lower() == _METADATA]
    return metadata or _tables_at_the_top(tables)


def _tables_at_the_top(tables: Sequence[str]) -> list[str]:
    """The tables in no folder that are called as splits; otherwise the ones in Parquet."""
    tables = [name for name in tables if "/" not in name]
    of_splits = [name for name in tables if split_name(stem_of(name))]
    if of_splits:
        return of_splits
    return [name for name in tables if has_ending(name, PARQUET)]


def _names_images(folder: Path, name: str) -> bool:
    """Whether a table has a column of the names of images."""
    columns = column_names(folder / name)
    if any(map(_COLUMN.fullmatch, columns)):
        return True
    if "/" in name or not has_ending(name, PARQUET):
        return False  # it may be a labels file
    return any(name in columns for name in FILES)


def _split_of(name: str) -> str:
    """The split that a table is of, by its own name or that of a folder above it; "" for none."""
    *folders, _ = name.split("/")
    for part in (*folders, stem_of(name)):
        split = split_name(part)
        if split:
            return split
    return ""


def _certainty(inspection: Inspection, rows: Rows, bare_count: int) -> int:
    """Surest if it names at least half of the images,
    and says more of them than class folders do.
    """
    if 2 * bare_count > len(inspection.items):
        return ONLY_IF_ASKED
    roles = rows.roles
    says_more = roles.label or roles.mask or roles.objects or roles.is_box_a_row
    if not says_more and shape_of(inspection.items).has_classes:
        return POSSIBLE
    return CERTAIN + 1


def _propose(
    images: RowListing,
    groups: Mapping[str, Sequence[str]],
    source: Source,
    recipe: Recipe,
    content: Content,
) -> Proposal:
    names = list(images.listing.names)
    paths = {split: list(names) for split, names in groups.items()}
    splits = {split: split for split in images.splits}
    options: dict[str, str | bool] = {}
    if source.label is not None:
        options["label"] = source.label
    if source.image is not None:
        options["image"] = source.image
    return Proposal(
        "table",
        content,
        names,
        paths=paths,
        splits=splits,
        places=recipe.splits or {},
        options=options,
    )


def _evidence(inspection: Inspection, tables: Sequence[str], rows: Rows, bare_count: int) -> str:
    """How many images the tables name, and in which column."""
    total = len(inspection.items)
    named = total - bare_count
    counts = f"{named:,} of {number_of(total, 'image')}"
    if len(rows.images) > named:  # some are in archives
        counts = number_of(len(rows.images), "image")
    verb = "names" if len(tables) == 1 else "name"
    return f"{listed(tables)} {verb} {counts} in the column `{rows.roles.image}`"


def _evidence_of_marks(images: RowListing) -> list[str]:
    """The numbers of boxes and masks."""
    evidence: list[str] = []
    box_counts = [len(image.objects) for image in images.marks.images.values()]
    if box_counts:
        boxes = number_of(sum(box_counts), "box", "boxes")
        marked_count = len(box_counts) - box_counts.count(0)
        evidence.append(f"{boxes} in {number_of(marked_count, 'image')}")
    mask_count = len(images.marks.masks)
    if mask_count:
        evidence.append(number_of(mask_count, "mask"))
    return evidence


def _unnamed(inspection: Inspection, tables: Sequence[str], bare: Sequence[str]) -> InputError:
    """The fault of images in no row."""
    count = number_of(len(bare), "image is", "images are")
    problem = f"{inspection.folder}: {count} in no row of {listed(tables)}: {listed(bare)}"
    hint = f"add a row for each of these images to {either(tables)}"
    return InputError(problem, "expected a row for each image", hint)


STRUCTURES = {"universal-table": recognise}
