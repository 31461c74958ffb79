"""none_annotated: images, and annotations of which none is theirs -> the error."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.namesakes import path_alone, refuse_namesakes
from imagenet_prep.recipes.path_matching import folders_to_strip
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.text import listed, number_of


def none_annotated(
    places: Sequence[str], images: AnnotatedImages, ending: str, *, is_by_name: bool
) -> InputError:
    """The error for annotations of other images: it shows a name of each.

    ``places`` are the files or folders of annotations, whose names usually have this ``ending``.
    ``is_by_name``: files name the images; otherwise files and folders have their names.
    """
    place = listed(places)
    missing = list(dict.fromkeys(images.missing))
    if not missing and is_by_name:
        expected = "expected annotations of at least one image"
        return InputError(f"{place}: no image is annotated", expected)
    if not missing:
        expected = "expected a file of annotations with the name of at least one image"
        if ending:
            image = images.names[0]
            expected += f", such as {PurePath(image).stem}{ending} for {image}"
        return InputError(f"{place}: no file of annotations", expected)
    if is_by_name:
        return _other_names(place, missing, images)
    stems = {PurePath(image).stem: image for image in images.names}
    namesake = next((file for file in missing if PurePath(file).stem in stems), None)
    if namesake is not None:
        image = stems[PurePath(namesake).stem]
        name = PurePath(namesake).name
        return InputError(
            f"{place}: the annotations are in other folders than their images",
            f"expected {name} in a folder like that of the image {image}, got {namesake}",
            _remedy_of_folders(missing),
        )
    none_is_there = number_of(
        len(missing),
        "file has annotations, but not the name of an image",
        "files have annotations, but none has the name of an image",
    )
    return InputError(
        f"{place}: {none_is_there}",
        _expected_file(images.names[0], missing[0]),
        "get the images, or give each annotation the name of its image",
    )


def _remedy_of_folders(files: Sequence[str]) -> str:
    """The hint for annotations in other folders: their folders, if no two files have one name."""
    if len({PurePath(file).name for file in files}) < len(files):
        return "put the annotations into folders like those of the images"
    folders = dict.fromkeys(str(PurePath(file).parent) for file in files)
    return f"name each folder that holds such files in the recipe's `boxes`: {listed(folders)}"


def _other_names(place: str, missing: Sequence[str], images: AnnotatedImages) -> InputError:
    """The error for files that name other images, or several at once."""
    refuse_namesakes(place, missing, images.names, images.roots.strip)
    names = set(map(path_alone, missing))  # several files may name one
    none_is_there = number_of(
        len(names),
        "image is named, and it is not in the source",
        "images are named, and none of them is in the source",
    )
    hint = "get the images, or correct their names"
    if images.roots.strip:
        hint = "get the images, or correct `strip` in the recipe"
    else:
        folders = folders_to_strip(list(names), images.names)
        if folders:
            hint = (
                f"if these are the same images, read the names without {folders}: run init with "
                f"--strip {shlex.quote(folders)}, or write in the recipe `strip: {flow(folders)}`"
            )
    return InputError(f"{place}: {none_is_there}", _expected_name(images, missing), hint)


def _expected_file(image: str, file: str) -> str:
    """A file name that an image could have, and one of no image; both have the same ending."""
    name = f"{PurePath(image).stem}{PurePath(file).suffix}"
    return f"expected a name such as {name} for the image {image}, got {PurePath(file).name}"


def _expected_name(images: AnnotatedImages, missing: Sequence[str]) -> str:
    return f"expected names such as {images.names[0]}, got {missing[0]}"
