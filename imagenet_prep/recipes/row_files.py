"""list_rows: the Rows of a table or a function -> Inputs, their images found on the disk and in
archives, by split.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import Engine
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.recipes.recipe_paths import OUTSIDE
from imagenet_prep.recipes.row_marks import RowMarks, find_masks
from imagenet_prep.recipes.row_source import RowImage, Rows
from imagenet_prep.recipes.source_rules import SPLIT_NAME, SPLIT_SIGNS
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.file_lists import LookUp
from imagenet_prep.sources.names import Names, name_of, text_of
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.sources.tars import in_order, list_tars
from imagenet_prep.sources.zips import SealedZip, list_zip
from imagenet_prep.storage.files import kind_of
from imagenet_prep.text import listed, number_of, one_of

_ARCHIVE = re.compile(r"(.*?\.(?:tar|zip))/(.+)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[/\\]+")
_CHUNK = 4096  # names per task
_PROBED = 100  # images that are looked up before all of them are
_SHOWN = 3


def list_rows(file: RecipeFile, rows: Rows, root: Path, engine: Engine, origin: Path) -> Inputs:
    """The images of rows, with their labels, boxes and masks, as the inputs of a recipe."""
    images = find_images(file, rows, root, engine)
    listing = images.listing
    table = rows.table_of(images.images, list(listing.names))
    return Inputs(
        listing,
        images.remarks,
        images.base,
        origin,
        divided=images.splits,
        table=(table, origin),
        marks=images.marks,
    )


class RowListing(Struct, frozen=True):
    """The images of rows, found: by split, then by name.

    Args:
        listing: the images; names start at ``base``, or are those of a sealed file's members.
        remarks: links out of the data.
        base: the folder.
        images: the rows, in the order of the listing.
        splits: the rows of each split; empty if the rows have no splits.
        marks: their boxes and masks.
    """

    listing: Catalog
    remarks: Remarks
    base: Path
    images: Sequence[RowImage]
    splits: Mapping[str, range]
    marks: RowMarks


def find_images(file: RecipeFile, rows: Rows, root: Path, engine: Engine) -> RowListing:
    """Find the image of every row.

    Raises:
        InputError: an image is not there, is outside of the data, or has two rows; or only some
            rows have a split.
    """
    strip = _strip(file)
    paths = [_place_of(image, strip) for image in rows.images]
    base = _base_of(rows.images, paths, root)
    lead = f"{text_of(str(base)).rstrip('/')}/"
    names = [path.removeprefix(lead) for path in paths]
    _refuse_twice(rows.images, names)
    listing, remarks = _look_up(rows.images, names, base, engine)
    splits = _splits_of(file, rows)
    order = _order_of(splits, names)
    ordered_listing = listing.picked(np.array(order, np.int64))
    ordered_images = [rows.images[row] for row in order]
    images_by_name = {names[row]: rows.images[row] for row in order}
    find_path = functools.partial(_path_of, strip=strip)
    masks = find_masks(images_by_name, find_path, root)
    has_boxes = rows.roles.objects is not None or rows.roles.is_box_a_row
    marks = RowMarks(images_by_name if has_boxes else {}, masks)
    return RowListing(ordered_listing, remarks, base, ordered_images, _rows_by_split(splits), marks)


def _order_of(splits: Sequence[str], names: Sequence[str]) -> list[int]:
    """The rows by split, in the order in which splits occur, then by the bytes of their names."""
    distinct_splits = dict.fromkeys(splits)
    number_of_split = {split: number for number, split in enumerate(distinct_splits)}
    keys: list[tuple[int, bytes]] = []
    for split, name in zip(splits, names, strict=True):
        key = (number_of_split[split], name.encode())
        keys.append(key)
    return sorted(range(len(keys)), key=keys.__getitem__)


def _rows_by_split(splits: Sequence[str]) -> dict[str, range]:
    """The rows of each split once images are sorted by it; none where images have no split."""
    rows: dict[str, range] = {}
    start = 0
    for split, count in Counter(splits).items():
        stop = start + count
        if split:
            rows[split] = range(start, stop)
        start = stop
    return rows


# paths --------------------------------------------------------------------------------------------


def _strip(file: RecipeFile) -> str:
    """The beginning that the recipe takes off every path."""
    return file.recipe.strip or ""


def _place_of(image: RowImage, strip: str) -> str:
    """The absolute path of an image, as text; of one in a sealed file, its name there."""
    if image.archive is not None:
        return image.file_name
    return _path_of(image, image.file_name, strip)


def _path_of(image: RowImage, text: str, strip: str) -> str:
    """The absolute path that a row means by a text, as text."""
    written = text.removeprefix(strip)
    if strip:
        written = written.lstrip("/")
    joined = os.path.join(image.folder, written)  # noqa: PTH118 - texts, no paths
    path = os.path.normpath(joined)
    if "\\" in written and kind_of(Path(path)) == "nothing":
        slashed = path.replace("\\", "/")  # Windows wrote it
        return os.path.normpath(slashed)
    return path


def _base_of(images: Sequence[RowImage], paths: Sequence[str], root: Path) -> Path:
    """The folder where names start: that of the tables, or the root of the data if an image is
    outside of it.

    Raises:
        InputError: an image is outside of both.
    """
    plain_files: list[tuple[RowImage, str]] = []
    for image, path in zip(images, paths, strict=True):
        if image.archive is None:
            plain_files.append((image, path))
    root_text = text_of(str(root))
    folders = {image.folder for image, _ in plain_files} or {root_text}
    shared_folder = os.path.commonpath(sorted(folders))
    outside: list[tuple[RowImage, str]] = []
    for base in (shared_folder, root_text):
        lead = f"{base.rstrip('/')}/"
        outside = [(image, path) for image, path in plain_files if not path.startswith(lead)]
        if not outside:
            return Path(name_of(base))
    image, path = outside[0]
    hint = OUTSIDE
    prefix, count = find_prefix(images)
    if prefix:
        have = number_of(count, "image is", "images are")
        hint = f"{have} there without {prefix}: write in the recipe strip: {flow(prefix)}"
    raise fault(
        image.where, f"{path} is outside of the data", f"expected a path below {root}", hint
    )


def find_prefix(images: Sequence[RowImage]) -> tuple[str, int]:
    """The folders of another machine that all paths start with, and how many images are there
    without them.

    ("", 0) if at least half of the images are there with them, or less than half without.
    """
    file_names = [image.file_name for image in images]
    shared = os.path.commonprefix(file_names)  # noqa: RUF071 - a URL is no path
    ends = [separator.end() for separator in _SEPARATORS.finditer(shared)]
    step = len(images) // _PROBED + 1
    probes = images[::step]
    for end in (0, *ends):
        prefix = shared[:end]
        if not _count_files(probes, prefix):
            continue
        count = _count_files(images, prefix)
        if 2 * count < len(images):
            continue
        if not prefix:
            break
        return prefix, count
    return "", 0


def _count_files(images: Sequence[RowImage], prefix: str) -> int:
    """How many images are there without this beginning of their paths."""
    count = 0
    for image in images:
        path = name_of(_path_of(image, image.file_name, prefix))
        if os.path.isfile(path):  # noqa: PTH113 - texts, no paths
            count += 1
    return count


def _refuse_twice(images: Sequence[RowImage], names: Sequence[str]) -> None:
    """Raise InputError if two rows name one image in different words."""
    image_of_name: dict[str, RowImage] = {}
    for image, name in zip(images, names, strict=True):
        first_image = image_of_name.setdefault(name, image)
        if first_image is not image:
            first_text = f"{first_image.file_name} in {first_image.where}"
            problem = f"{image.file_name} is the same file as {first_text}"
            raise fault(image.where, problem, "expected one path for each image")


# files and members --------------------------------------------------------------------------------


def _look_up(
    images: Sequence[RowImage], names: Sequence[str], base: Path, engine: Engine
) -> tuple[Catalog, Remarks]:
    """The row of each image, in the order of ``names``."""
    plain_rows, members = _rows_by_archive(images, names, base)
    plain_names = [names[row] for row in plain_rows]
    files, remarks, missing = _plain_files(plain_names, base, engine)
    builder = CatalogBuilder()
    builder.extend(files)
    listed_rows = [row for place, row in enumerate(plain_rows) if place not in missing]
    lost = [(plain_rows[place], reason) for place, reason in missing.items()]
    for archive, named_members in members.items():
        first_row, _ = named_members[0]
        is_sealed = images[first_row].archive is not None
        part, part_rows, absent_rows = _members(
            archive, named_members, names, engine, is_sealed=is_sealed
        )
        builder.extend(part)
        listed_rows += part_rows
        lost += [(row, f"is not in {archive.name}") for row in absent_rows]
    if lost:
        raise _not_there(images, names, sorted(lost), base)
    order = np.argsort(np.array(listed_rows, np.int64), kind="stable")
    return builder.listed().picked(order), remarks


def _rows_by_archive(
    images: Sequence[RowImage], names: Sequence[str], base: Path
) -> tuple[list[int], dict[Path, list[tuple[int, str]]]]:
    """The rows of plain files, and by archive the rows of its members,
    each with the member's name.
    """
    plain_rows: list[int] = []
    members: dict[Path, list[tuple[int, str]]] = {}
    archives: dict[str, Path | None] = {}  # by the beginning of a name; None: it is no file
    for row, (image, name) in enumerate(zip(images, names, strict=True)):
        if image.archive is not None:
            members.setdefault(image.archive, []).append((row, name))
            continue
        match = _ARCHIVE.fullmatch(name)
        if match is None:
            plain_rows.append(row)
            continue
        archive_name, member_name = match.groups()
        if archive_name not in archives:
            path = base / archive_name
            archives[archive_name] = path if kind_of(path) == "file" else None
        archive = archives[archive_name]
        if archive is None:
            plain_rows.append(row)
        else:
            members.setdefault(archive, []).append((row, member_name))
    return plain_rows, members


def _plain_files(
    names: Sequence[str], base: Path, engine: Engine
) -> tuple[Catalog, Remarks, dict[int, str]]:
    """The files that are there, remarks, and the place of each name that is not,
    with the reason.
    """
    starts = range(0, len(names), _CHUNK)
    chunks = (names[start : start + _CHUNK] for start in starts)
    results = in_order(engine, LookUp(base), chunks)
    builder = CatalogBuilder()
    remarks_of_chunks: list[Remarks] = []
    missing: dict[int, str] = {}
    for start, (files, remarks, absent) in zip(starts, results, strict=True):
        builder.extend(files)
        remarks_of_chunks.append(remarks)
        for place, reason in absent:
            missing[start + place] = reason
    all_remarks = Remarks.join(remarks_of_chunks)
    return builder.listed(), all_remarks, missing


def _members(
    archive: Path,
    named_members: Sequence[tuple[int, str]],
    names: Sequence[str],
    engine: Engine,
    *,
    is_sealed: bool,
) -> tuple[Catalog, list[int], list[int]]:
    """The members of an archive that rows name, each row's own; these rows,
    and the rows whose member is not there.
    """
    if is_sealed:
        listing = list_zip(archive, SealedZip)
    elif archive.name.lower().endswith(".zip"):
        listing = list_zip(archive)
    else:
        listing = list_tars([archive], engine, folder_each=False)
    place_of = {name: place for place, name in enumerate(listing.names)}
    rows: list[int] = []
    places: list[int] = []
    absent_rows: list[int] = []
    for row, member_name in named_members:
        place = place_of.get(member_name)
        if place is None:
            absent_rows.append(row)
        else:
            rows.append(row)
            places.append(place)
    members = listing.picked(np.array(places, np.int64))
    names_of_rows = Names.take(names[row] for row in rows)
    return replace(members, names=names_of_rows), rows, absent_rows


_ABSENT = ("is not there", "is not in ")
"""The start of the reason of an image that is lost, where there is none."""


def _not_there(
    images: Sequence[RowImage], names: Sequence[str], lost: Sequence[tuple[int, str]], base: Path
) -> InputError:
    """The error for images that are not there."""
    row, reason = lost[0]
    path = base / names[row]
    what = f"{path} {reason}"
    expected = "expected every image that a row names"
    next_names = [names[next_row] for next_row, _ in lost[1 : 1 + _SHOWN]]
    if next_names:
        count = number_of(len(lost), "file")
        are_absent = all(lost_reason.startswith(_ABSENT) for _, lost_reason in lost)
        problem = "do not exist" if are_absent else "can't be read"
        first = str(path) if reason == _ABSENT[0] else what
        what = f"{count} of {len(names):,} {problem}: {first}, {listed(next_names)}"
    hint = (
        f"correct the rows, or bring the files back; relative paths start at {images[row].folder}"
    )
    return InputError(f"{images[row].where}: {what}", expected, hint)


# splits -------------------------------------------------------------------------------------------


def _splits_of(file: RecipeFile, rows: Rows) -> list[str]:
    """The split of each image; "" for all if the rows have none, or the recipe divides them by
    shares or places.

    Raises:
        InputError: only some have one, or a name can't be that of a split.
        UsageError: the recipe divides them by the values of a column that is not there.
    """
    images = rows.images
    first_images: dict[str, RowImage] = {}  # by the value of the column
    for image in images:
        first_images.setdefault(image.split, image)
    has_none = first_images.keys() == {""}
    split_of_value = _declared_values(file)
    if split_of_value and has_none:
        raise _without_values(file, rows, split_of_value)
    is_divided_otherwise = file.recipe.splits is not None and not split_of_value
    if has_none or is_divided_otherwise:
        return [""] * len(images)
    if "" in first_images:
        bare_image = first_images[""]
        problem = f"{bare_image.file_name} has no split"
        expected = "expected a split in every row" + ("" if split_of_value else ", or in none")
        raise fault(bare_image.where, problem, expected)
    if not split_of_value:
        split_of_value = _usual_names(set(first_images))
    for image in first_images.values():
        _check_split(image, split_of_value)
    return [split_of_value[image.split] for image in images]


def _without_values(file: RecipeFile, rows: Rows, split_of_value: Mapping[str, str]) -> UsageError:
    """The error for rows whose splits the recipe names by value, and that have no value."""
    values = "value" if len(split_of_value) == 1 else "values"
    pronoun = "it" if len(split_of_value) == 1 else "them"
    if rows.roles.split is None:
        problem = "the rows of `source` have no column named `split`"
        hint = f"rename the column that holds {pronoun} to split"
    else:
        problem = "the column `split` is empty in every row of `source`"
        hint = f"write {pronoun} into the rows"
    expected = f"expected a column named `split` with the {values} {listed(split_of_value)}"
    return file.fault(("splits",), problem, expected, hint)


def _declared_values(file: RecipeFile) -> dict[str, str]:
    """The split of each value of the column, where the recipe names them."""
    split_of_value: dict[str, str] = {}
    for split, (place_key, texts) in rules.places_of(file).items():
        if place_key == "value":
            split_of_value |= dict.fromkeys(texts, split)
    return split_of_value


def _check_split(image: RowImage, split_of_value: Mapping[str, str]) -> None:
    """Raise InputError unless the value of a row is a split, whose name shards can have."""
    problem = f"the split is {image.split!r}"
    if image.split not in split_of_value:
        expected = f"expected {one_of(split_of_value)}, as in `splits`"
        raise fault(image.where, problem, expected)
    split = split_of_value[image.split]
    if not SPLIT_NAME.fullmatch(split):
        raise fault(image.where, problem, f"expected {SPLIT_SIGNS}")


def _usual_names(values: set[str]) -> dict[str, str]:
    """The split that each value is: val is validation; as they are, if two would become one."""
    split_of_value = {value: split_name(value) or value for value in sorted(values)}
    distinct_splits = set(split_of_value.values())
    if len(distinct_splits) < len(split_of_value):
        return {value: value for value in split_of_value}
    return split_of_value
