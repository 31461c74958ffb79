"""Files that can't be read with the others of a folder or a tar: their faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.recipes.columns import Content, has_ending_of, is_other_image
from imagenet_prep.recipes.file_kinds import FORMATS_OF_CONTENT
from imagenet_prep.recipes.path_parts import counted
from imagenet_prep.text import listed, number_of

ANY_FORMAT = (
    'write source: {python: "module:function"} in a recipe: a function of yours can read any format'
)
"""The hint for what nothing here reads."""

_OTHER_CONTENT: dict[Content, Content] = {"image": "array", "pixels": "array", "array": "image"}


def wrong_formats(
    place: object, names: Iterable[str], content: Content | None, *, in_tar: bool = False
) -> list[InputError]:
    """The faults of images whose formats can't be read."""
    if content is None:
        return []
    odd_names = [name for name in names if is_other_image(content, name)]
    if not odd_names:
        return []
    problem = f"{place} holds images that can't be read: {counted(odd_names)}: {listed(odd_names)}"
    rest = "and pack them again" if in_tar else "or move them away"
    hint = f"convert such files to PNG or JPEG, {rest}"
    return [InputError(problem, f"expected {', '.join(FORMATS)}", hint)]


def unreadable(folder: Path, images: Sequence[str], content: Content | None) -> InputError:
    """The fault of images that can't be read as the others are."""
    files = number_of(len(images), "file")
    problem = f"{folder} holds {files} that can't be read with the others: {listed(images)}"
    if content == "array":
        return InputError(problem, "expected only arrays", f"move these files out of {folder}")
    expected = f"expected {', '.join(FORMATS_OF_CONTENT[content or 'image'])}"
    return InputError(problem, expected, f"convert these files, or move them out of {folder}")


def strange_among(names: Iterable[str], content: Content | None) -> list[str]:
    """The arrays among images, or the images among arrays."""
    if content is None:
        return []
    other_content = _OTHER_CONTENT[content]
    names_of_other = [name for name in names if has_ending_of(other_content, name)]
    return [name for name in names_of_other if not has_ending_of(content, name)]


def strange(
    place: object, names: Sequence[str], content: Content | None, fit: int, *, in_tar: bool = False
) -> InputError:
    """The fault of arrays among images, or of images among arrays; ``fit`` is the number of the
    others.
    """
    others = number_of(fit, "array" if content == "array" else "image")
    hint = f"move the images or the arrays out of {place}"
    if in_tar:
        hint = "pack it again with only images or only arrays"
    problem = f"{place} holds {counted(names)} next to {others}: {listed(names)}"
    return InputError(problem, "expected only images, or only arrays", hint)
