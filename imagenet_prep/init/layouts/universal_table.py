"""A table with a row for each image, as Hugging Face's imagefolder has it:
metadata.csv, .jsonl or .parquet.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection, main_content
from imagenet_prep.init.layout_choice import Choice
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.proposal import CERTAIN, ONLY_IF_ASKED, POSSIBLE, Interpretation, Proposal
from imagenet_prep.model import Engine
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.row_files import RowListing, find_images, find_prefix
from imagenet_prep.recipes.row_source import FILES, MASKS, Rows
from imagenet_prep.recipes.row_tables import ENDINGS, PARQUET, column_names, is_table, read_tables
from imagenet_prep.recipes.sample_sources import list_samples
from imagenet_prep.recipes.schema import Recipe, Source
from imagenet_prep.recipes.splits import place_of_split, split_name, stem_of
from imagenet_prep.sources.names import text_of
from imagenet_prep.sources.parquets import has_images
from imagenet_prep.text import listed, number_of

_METADATA = "metadata"
_COLUMN = re.compile(r"(.*_)?file_name")
_NAME = "universal-table"


def recognise(inspection: Inspection) -> Interpretation | None:
    """Tables called metadata, or as splits are, or in Parquet,
    that name images in a column file_name.
    """
    groups = _tables_in(inspection)
    if not groups:
        return None
    tables = [name for several in groups.values() for name in several]
    meaning = f"{listed(tables)} has a row for each image"
    folder = Path(os.path.abspath(inspection.folder))  # noqa: PTH100 - links stay, as in names
    paths = {split: [folder / name for name in several] for split, several in groups.items()}
    asked = inspection.options
    source, recipe = _settings_of(asked)
    rows = None
    try:
        rows = read_tables(source, paths)
        if asked.splits.values() and set(asked.splits.values()) <= {
            image.split for image in rows.images
        }:
            recipe = replace(recipe, splits=splits_by_value(asked.splits))
        found = find_images(_as_file(folder, recipe), rows, folder, inspection.engine)
    except InputError as error:
        is_sure = _says_more(paths) or (rows is not None and _names_most(inspection, folder, rows))
        certainty = (
            CERTAIN + 1 if is_sure else POSSIBLE
        )  # a table of labels may be readable otherwise
        if rows is not None:
            error = _with_command(error, rows, asked, inspection.folder)
        return Interpretation(certainty, (), meaning, faults=(error,), annotation_files=tables)
    lead = Path(os.path.relpath(found.base, folder)).as_posix()
    named = {posixpath.normpath(f"{lead}/{name}") for name in found.listing.names}
    bare = [name for name in inspection.items if name not in named]
    return Interpretation(
        _certainty(inspection, rows, len(bare)),
        (_evidence(inspection, tables, rows, len(bare)), *_evidence_of(found)),
        meaning,
        _propose(found, groups, source, recipe, inspection.content or "image"),
        annotation_files=tables,
        containers=[
            name
            for name in inspection.archives
            if any(image.startswith(f"{name}/") for image in named)
        ],
        is_labelled=rows.roles.label is not None,
        losses=[_unnamed(inspection, tables, bare)] if bare else [],
        labelled=sum(image.label is not None for image in found.images),
        classes=len({str(image.label) for image in found.images if image.label is not None}),
    )


def choose_table(table: Path, engine: Engine, asked: InitOptions) -> Choice:
    """The recipe of one table.

    Args:
        table: its path.
        engine: lists archives.
        asked: the options of init.

    Raises:
        InputError: it names no images, or one that is not there; the error has its line.
    """
    path = Path(os.path.abspath(table))  # noqa: PTH100 - links stay, as in names
    if path.name.lower().endswith(PARQUET) and has_images(path):
        samples, _ = list_samples("parquet", {"": [path]}, engine)
        names = list(samples.listing.names)
        evidence = f"{path.name} holds {number_of(len(names), 'image')}"
        return Choice(
            "parquet", (evidence,), (), Proposal("parquet", "image", names, paths={"": [path.name]})
        )
    groups = {_split_of(path.name): [path]}
    source, recipe = _settings_of(asked)
    recipe = replace(recipe, splits=splits_by_value(asked.splits) or None)
    rows = read_tables(source, groups)
    try:
        found = find_images(_as_file(path, recipe), rows, path.parent, engine)
    except InputError as error:
        raise _with_command(error, rows, asked, table) from error
    content = main_content(found.listing.names) or "image"
    evidence = (
        f"{path.name} names {number_of(len(found.images), 'image')} in its column "
        f"`{rows.roles.image}`"
    )
    proposal = _propose(found, {split: [path.name] for split in groups}, source, recipe, content)
    return Choice(_NAME, (evidence, *_evidence_of(found)), tuple(_others_of(path)), proposal)


def _settings_of(asked: InitOptions) -> tuple[Source, Recipe]:
    """The columns and the beginning of paths that the user names."""
    return Source(label=asked.label, image=asked.image), Recipe(strip=asked.strip)


def _with_command(error: InputError, rows: Rows, asked: InitOptions, place: Path) -> InputError:
    """The error for images that are not there,
    with the command that takes another machine's folders off.
    """
    prefix, count = find_prefix(rows.images)
    if not prefix or prefix == asked.strip:
        return error
    counts = f"{count:,} of {number_of(len(rows.images), 'image')}"
    return InputError(error.what, error.detail).with_choices(
        [f"  {counts}: {asked.command(place, strip=prefix)}"]
    )


def _others_of(path: Path) -> list[str]:
    """The note on tables of other splits next to one of a split."""
    if not _split_of(path.name):
        return []
    names = sorted(each.name for each in path.parent.iterdir() if each != path and is_table(each))
    others = [name for name in names if _split_of(name)]
    way = f"source: {{table: {{{_split_of(path.name)}: {path.name}, ...}}}}"
    return (
        [f"{listed(others)}: not read; in a recipe, {way} takes a table for each split"]
        if others
        else []
    )


def _names_most(inspection: Inspection, folder: Path, rows: Rows) -> bool:
    """Whether most rows name a file of the folder, by paths that start at their tables."""
    known = set(inspection.listing.names)
    lead = text_of(str(folder))
    named = [
        posixpath.relpath(f"{image.folder}/{image.file_name}", lead) in known
        for image in rows.images
    ]
    return 2 * sum(named) >= len(named)


def _says_more(groups: Mapping[str, Sequence[Path]]) -> bool:
    """Whether a table has boxes or masks, which no labels file can have."""
    names = {name for paths in groups.values() for path in paths for name in column_names(path)}
    return not names.isdisjoint(("objects", "xmin", *MASKS))


def splits_by_value(splits: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """A recipe's ``splits`` for splits that are values of a column."""
    return {split: {"value": value} for split, value in splits.items()}


def _as_file(path: Path, recipe: Recipe) -> RecipeFile:
    """A recipe of a table, before it is written."""
    return RecipeFile(path, replace(recipe, source=Source(table=path.name)), {(): 1})


def _tables_in(inspection: Inspection) -> dict[str, list[str]]:
    """The tables of a folder by split ("": of none); none if only some are of a split."""
    tables = [name for name in inspection.listing.names if name.lower().endswith(ENDINGS)]
    metadata = [name for name in tables if stem_of(name).lower() == _METADATA]
    of_splits = [name for name in tables if "/" not in name and split_name(stem_of(name))]
    indexes = [name for name in tables if "/" not in name and name.lower().endswith(PARQUET)]
    groups: dict[str, list[str]] = {}
    for name in metadata or of_splits or indexes:
        is_index = name in indexes  # no labels file can be one
        columns = column_names(inspection.folder / name)
        if any(_COLUMN.fullmatch(column) or (is_index and column in FILES) for column in columns):
            groups.setdefault(_split_of(name), []).append(name)
    if "" in groups and len(groups) > 1:
        return {}
    return {split: groups[split] for split in sorted(groups, key=place_of_split)}


def _split_of(name: str) -> str:
    """The split that a table is of, by its own name or that of a folder above it; "" for none."""
    *folders, _ = name.split("/")
    return next((split for text in (*folders, stem_of(name)) if (split := split_name(text))), "")


def _certainty(inspection: Inspection, rows: Rows, bare: int) -> int:
    """Surest if it names at least half of the images,
    and says more of them than class folders do.
    """
    if 2 * bare > len(inspection.items):
        return ONLY_IF_ASKED
    says_more = rows.roles.label or rows.roles.mask or rows.roles.objects or rows.roles.is_box_a_row
    if shape_of(inspection.items).has_classes and not says_more:
        return POSSIBLE
    return CERTAIN + 1


def _propose(
    found: RowListing,
    groups: Mapping[str, Sequence[str]],
    source: Source,
    recipe: Recipe,
    content: Content,
) -> Proposal:
    named = {"label": source.label, "image": source.image}
    return Proposal(
        "table",
        content,
        list(found.listing.names),
        paths={split: list(several) for split, several in groups.items()},
        splits={split: split for split in found.splits},
        places=recipe.splits or {},
        options={key: column for key, column in named.items() if column is not None},
    )


def _evidence(inspection: Inspection, tables: Sequence[str], rows: Rows, bare: int) -> str:
    total = len(inspection.items)
    names = "names" if len(tables) == 1 else "name"
    column = rows.roles.image
    if not total:
        return (
            f"{listed(tables)} {names} {number_of(len(rows.images), 'image')} in the column "
            f"`{column}`"
        )
    return f"{listed(tables)} {names} {total - bare:,} of {total:,} images in the column `{column}`"


def _evidence_of(found: RowListing) -> list[str]:
    """The numbers of boxes and masks."""
    boxes = sum(len(image.objects) for image in found.marks.images.values())
    notes = (
        [f"{number_of(boxes, 'box', 'boxes')} in {len(found.marks.images):,} images"]
        if found.marks.images
        else []
    )
    return notes + ([f"{number_of(len(found.marks.masks), 'mask')}"] if found.marks.masks else [])


def _unnamed(inspection: Inspection, tables: Sequence[str], bare: Sequence[str]) -> InputError:
    files = number_of(len(bare), "image is", "images are")
    what = f"{inspection.folder}: {files} in no row of {listed(tables)}: {listed(bare)}"
    return InputError(what, "expected a row for each image", "add their rows")


LAYOUTS = {"universal-table": recognise}
