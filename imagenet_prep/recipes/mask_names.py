"""Names of masks: whether a folder's name says that masks are in it,
and which image a mask's name means.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence

_MASK_FOLDER = re.compile(
    r"masks?|annotations?|annotated|anndir|labels?|labelled|gt|gtfine|gtcoarse|groundtruths?"
    r"|segs?|segmentations?|segmentationclass|segmentationobject|targets?|trimaps?|mattes?"
)
_IMAGE_FOLDER = re.compile(
    r"images?|imgs?|imgdir|jpegimages|photos?|pictures?|rgb|inputs?|originals?|leftimg8bit|raw"
)
_WORDS = r"mask|masks|gt|seg|segmentation|label|labels|labelids|annotation|matte|manual|l|p|m"
_MASK_NAME = re.compile(rf"(.+)[ _.-](?:{_WORDS})(?:[ _-]?\d+)?")
_SURE_NAME = re.compile(
    r"(.+)[ _.-](?:mask|masks|gt|seg|segmentation|label|labels|labelids|annotation)(?:[ _-]?\d+)?"
)

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z\d _.-]+")
_MASK_PART = re.compile(
    r"masks?|annot(?:s|ated|ations?)?|labels?|labelled|gt|groundtruths?|truth|segmentations?|segs?|manual|targets?"
    r"|trimaps?|mattes?"
)
_IMAGE_PART = re.compile(r"images?|imgs?|inputs?|photos?|pictures?|frames?|originals?")
_GLUED = re.compile(r"(.+?)(annot|masks?|labels?|gt)", re.IGNORECASE)


_CACHED = 1 << 14
"""Names of folders whose answers are kept: each is asked about for every file in it, by every
format.
"""


def _plain(folder: str) -> str:
    return re.sub(r"[^a-z0-9]", "", folder.lower())


@functools.lru_cache(_CACHED)
def is_image_folder(name: str) -> bool:
    """Whether a folder has a name that says no more than that images are in it."""
    return _IMAGE_FOLDER.fullmatch(_plain(name)) is not None


@functools.lru_cache(_CACHED)
def is_mask_folder(name: str) -> bool:
    """Whether a folder has the name of one of masks or annotations."""
    return _MASK_FOLDER.fullmatch(_plain(name)) is not None


@functools.lru_cache(_CACHED)
def may_be_mask_folder(name: str) -> bool:
    """Whether a word of a folder's name means masks, as in train_masks and trainannot:
    its files must show the rest.
    """
    return is_mask_folder(name) or core_of(name, images=False) != name


def core_of(folder: str, *, images: bool = True) -> str:
    """A folder's name without the words that say what is in it: "train" for train_masks, trainannot
    and train_images.

    With ``images`` false, only words of masks are taken off.
    """
    glued = _GLUED.fullmatch(folder)
    if glued and re.fullmatch(r"train|val|valid|validation|test", glued[1], re.IGNORECASE):
        return glued[1]
    words = _PART.findall(folder)
    core_words = [word for word in words if not _names_content(word.lower(), images=images)]
    return folder if len(core_words) == len(words) else "_".join(core_words)


def _names_content(word: str, *, images: bool) -> bool:
    """Whether a word says what is in a folder."""
    if _MASK_PART.fullmatch(word):
        return True
    return images and _IMAGE_PART.fullmatch(word) is not None


def unmasked(stem: str) -> str:
    """The name of the image that a mask of this name belongs to;
    the same name if it says nothing of that.
    """
    match = _SURE_NAME.fullmatch(stem.lower())
    return stem[: len(match[1])] if match else stem


def is_mask_suffix(suffix: str) -> bool:
    """Whether the end of a name means a mask: _mask, -seg, _L."""
    return bool(_MASK_NAME.fullmatch(f"a{suffix.lower()}"))


def folder_around(names: Iterable[str]) -> str:
    """The name of the folder that each file is directly in:
    "images" for a/images/1.png and b/images/2.png; or "".
    """
    folders = {name.rpartition("/")[0].rpartition("/")[2] for name in names}
    return folders.pop() if len(folders) == 1 else ""


def folders_around(names: Sequence[str]) -> str:
    """The folders that all of these files are in, with a slash behind them; "" for none."""
    first_folder = min(names).rpartition("/")[0]
    last_folder = max(names).rpartition("/")[0]
    common = os.path.commonpath([first_folder, last_folder])
    return f"{common}/" if common else ""
