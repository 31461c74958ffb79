"""decide_content, keep_content: a recipe and a listing -> the content of its files, and the files
that have it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.model import OnDamaged
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.columns import ENDINGS, Content, has_ending_of, is_other_image
from imagenet_prep.recipes.file_kinds import fits, kinds_by_content
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.path_parts import counted
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Reader
from imagenet_prep.text import listed, number_of


def decide_content(file: RecipeFile, listing: Catalog) -> Content:
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
    key = _image_key(file)
    if key is not None:
        problem = "some files have names of arrays, and none has that of an image"
        hint = f"leave {key} out; or, if the files are images, write content: image"
        if recipe.array is not None:
            problem = "`array` says that the files are arrays"
            hint = f"leave {key} out"
        setting = "record: inception" if key == "record" else key
        raise file.fault((key,), problem, f"{setting} works with images only", hint)
    return "array"


def _are_arrays(endings: Collection[str]) -> bool:
    """Whether some files are arrays by their endings, and none is an image."""
    has_arrays = any(has_ending_of("array", ending) for ending in endings)
    return has_arrays and not any(has_ending_of("image", ending) for ending in endings)


def keep_content(
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
    if all(has_ending_of(content, ending) for ending in names.endings()):
        return listing, []
    fits = names.chosen(functools.partial(has_ending_of, content))
    is_unreadable = names.chosen(functools.partial(is_other_image, content))
    unknown_rows = np.flatnonzero(~(fits | is_unreadable)).tolist()
    known_rows = _known_by_content(inputs, unknown_rows, content)
    fits[known_rows] = True
    unreadable = names.picked(np.flatnonzero(is_unreadable))
    foreign = names.picked(np.flatnonzero(~(fits | is_unreadable)))
    has_fitting_files = bool(fits.any())
    may_skip = has_fitting_files and (inputs.has_folders or not foreign)
    refused = _refused_files(
        inputs, unreadable, foreign, on_damaged, has_fitting_files=has_fitting_files
    )
    kept = fits | is_unreadable  # each is set aside later, as damaged
    if refused:
        error = _unreadable_files(
            file,
            inputs,
            content,
            refused,
            has_fitting_files=has_fitting_files,
            may_skip=may_skip,
        )
        if not has_fitting_files or not inputs.has_folders:
            raise error
        inputs.obstacles.append(error)
        kept = fits
    known_names = [names[row] for row in known_rows]
    kept_files = listing.picked(np.flatnonzero(kept))
    return kept_files, _notes_on_files(known_names, foreign, content)


def _notes_on_files(
    known_names: Sequence[str], foreign: Sequence[str], content: Content
) -> list[str]:
    """The notes on files that are of a content by their first bytes, and on those of another."""
    notes: list[str] = []
    noun = _noun_of(content)
    if known_names:
        files_are = number_of(len(known_names), f"file is an {noun}", f"files are {noun}s")
        reason = "by the first bytes, not by the name"
        notes.append(f"{files_are} {reason}: {listed(known_names)}")
    if foreign:
        notes.append(_note_on_foreign(foreign, noun))
    return notes


def _refused_files(
    inputs: Inputs,
    unreadable: Sequence[str],
    foreign: Sequence[str],
    on_damaged: OnDamaged,
    *,
    has_fitting_files: bool,
) -> Sequence[str]:
    """The names for the error: images of a format that can't be read, or else files of other
    content; none if all can be left out.
    """
    if not has_fitting_files:
        return unreadable or foreign
    if unreadable and on_damaged == "refuse":
        return unreadable
    return [] if inputs.has_folders else foreign


def _noun_of(content: Content) -> str:
    return "array" if content == "array" else "image"


def _unreadable_files(
    file: RecipeFile,
    inputs: Inputs,
    content: Content,
    names: Sequence[str],
    *,
    has_fitting_files: bool,
    may_skip: bool,
) -> InputError:
    """The error for files that can't be read as this content."""
    noun = _noun_of(content)
    problem = number_of(
        len(names), f"file is not recognised as an {noun}", f"files are not recognised as {noun}s"
    )
    first_file = f": {names[0]}"
    if len(names) > 1:
        first_file = f", {names[0]} first ({counted(names)})"
    endings = ", ".join(ENDINGS[content])
    files = "it" if len(names) == 1 else "them"
    convert = f"convert {files}"
    if content != "array":
        convert = f"convert {files} to JPEG or PNG,"
    remove = f"or remove {files}"
    hint = f"{convert} {remove}"
    if not has_fitting_files:
        hint += _hint_on_content(file, content, names)
    if may_skip:
        hint += f"; on_damaged: skip, or --on-damaged skip, leaves {files} out"
    return InputError(
        f"{_origin_of(file, inputs, names)}: {problem}{first_file}",
        f"expected {noun}s ({endings}), since content is {content}",
        hint,
    )


def _origin_of(file: RecipeFile, inputs: Inputs, names: Sequence[str]) -> str:
    """Where files are from, for a message: the source, which may be the user's function, and the
    row of a single file of that.
    """
    source = file.recipe.source
    if file.sealed is None or source is None:
        return str(inputs.origin)
    if len(names) == 1 and inputs.table is not None:
        table, path = inputs.table
        if names[0] in table.paths:
            row = table.paths.index(names[0])
            return table.place(path, table.lines[row])
    return str(source.value)


def _hint_on_content(file: RecipeFile, content: Content, names: Sequence[str]) -> str:
    """The content to write in the recipe, if all files have names of another one, and no key of the
    recipe holds this one; "" for none.
    """
    if file.recipe.array is not None or _image_key(file) is not None:
        return ""
    for other_content in ENDINGS:
        if other_content == content:
            continue
        if all(has_ending_of(other_content, name) for name in names):
            recipe = str(file.path) if file.path.is_file() else "a recipe"  # init has none yet
            return f", or write content: {other_content} in {recipe}"
    return ""


def _image_key(file: RecipeFile) -> str | None:
    """The first key of the recipe that works with images only; None if there is none."""
    key = rules.first_key_only_with(file, "images", "boxes")
    if key is None and file.recipe.record == "inception":
        key = "record"
    return key


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


def refuse_several_arrays(file: RecipeFile, listing: Catalog) -> None:
    """Raise UsageError if the first .npz holds several arrays: the recipe must name one."""
    row = next(
        (row for row, name in enumerate(listing.names) if name.lower().endswith(".npz")), None
    )
    names = [] if row is None else names_in_npz(listing.read(row, Reader()))
    if row is not None and len(names) > 1:
        what = f"{listing.names[row]} holds {len(names)} arrays: {listed(names, 5)}"
        hint = (
            f"write array: {flow(names[0])} in the recipe; if the file holds many examples, "
            "save each as a file"
        )
        raise file.fault((), what, "expected `array`, the name of one of them", hint)
