"""Words in the names of folders and files: which mean a split, images or masks, and which are
hardly ever classes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

# splits -------------------------------------------------------------------------------------------

_SPLIT = re.compile(
    r"(?:(?:seg|data|set|images?|imgs?)[ _-])?"
    r"(train|training|trainval|val|valid|validation|dev|public[ _-]?test|"
    r"test|testing|eval|evaluation|hold[ _-]?out|private[ _-]?test)"
    r"(?:[ _-]?(?:set|data|split|folder|images?|imgs?))?"
    r"(?:[ _-]|\.X)?\d*(?-i:[AB])?",
    re.IGNORECASE,
)
_SPLIT_OF_WORD = {
    **dict.fromkeys(("train", "training", "trainval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "publictest"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "holdout", "privatetest"), "test"),
}
"""The split that a word means, as Hugging Face's datasets and Kaggle's competitions have it."""

_TRAIN_AND_VAL = re.compile(r"train[ _-]val(?![a-z])", re.IGNORECASE)

_FILLING = frozenset(("set", "data", "images", "image", "imgs", "img", "split", "folder", "seg"))
"""Words that say nothing of a split."""


def split_name(folder: str) -> str:
    """The split that a folder is called as: "train" for train2017 or Training_set;
    "" if it is not.
    """
    match = _SPLIT.fullmatch(folder)
    if match is None:
        return ""
    word = re.sub(r"[^a-z]", "", match[1].lower())
    return _SPLIT_OF_WORD[word]


def name_as_split(folder: str) -> str:
    """The name of a split for a folder of any name:
    other characters than letters, digits and _ become hyphens.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "-", folder)
    if name.startswith("-"):
        return f"_{name[1:]}"
    return name


def words_of_name(name: str) -> tuple[list[str], tuple[str, ...]]:
    """The splits that words of a name mean, and its other words, except those that say nothing."""
    joined = _TRAIN_AND_VAL.sub("trainval", name)
    splits: list[str] = []
    other_words: list[str] = []
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", joined):
        lowered = word.lower()
        if lowered in _SPLIT_OF_WORD:
            splits.append(_SPLIT_OF_WORD[lowered])
        elif lowered not in _FILLING:
            other_words.append(lowered)
    return splits, tuple(other_words)


def has_split_word(name: str, other_words: Collection[str]) -> bool:
    """Whether a name has a word next to those that it shares with others."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return bool(words - {*other_words, *_FILLING})


# folders that are hardly ever classes -------------------------------------------------------------

_NO_CLASSES = re.compile(
    r"(?:thumbs?|thumbnails?|previews?|samples?|examples?|demo|"  # copies
    # pictures of images
    r"depths?|depth ?maps?|disparity|heat ?maps?|overlays?|vis|visualizations?|"
    r"query|queries|gallery|distractors?|"  # halves of a search
    r"aug|augmented|augmentations?|extra|backup|cache|te?mp|outputs?|results|preds?|predictions?|"
    r"unlabell?ed|(?:\d+ )?clutter|background google|images?|imgs?|jpeg ?images|rgb)(?: "
    r"images?| imgs?)?"
)
"""Folders that are hardly ever classes."""

_NO_NAMES = re.compile(
    r"\d{4}[-_.]\d{2}[-_.]\d{2}|\d{8}|(?:19|20)\d{2}|\d{3}[A-Z]{5}|\d{5,}|"
    r"(?:.*[-_ ])?(?:images?|imgs?|part|batch|chunk|shard|session|day|week|vol|volume|disk)[-_ "
    r"]?\d+"
)
"""Folders that are called by days, as cameras do, by numbers with many zeros, or as parts:
they may be no classes.
"""

_UNLABELLED = re.compile(r"(?:seg )?(?:preds?|predict|predictions?|unlabell?ed|unsup)")
"""Folders next to splits whose images have no labels."""


def _words(folder: str) -> str:
    spaced = re.sub(r"[^a-z0-9]+", " ", folder.lower())
    return spaced.strip()


def is_no_class(folder: str) -> bool:
    """Whether a folder has a name that classes hardly ever have:
    thumbnails, query, depth, images.
    """
    words = _words(folder)
    return _NO_CLASSES.fullmatch(words) is not None


def is_unlabelled(folder: str) -> bool:
    """Whether a folder next to splits has a name that says that its images have no labels."""
    words = _words(folder)
    return _UNLABELLED.fullmatch(words) is not None


def are_numbers(folders: Collection[str]) -> bool:
    """Whether several folders are called by days, by numbers or as parts."""
    return len(folders) > 1 and all(map(_NO_NAMES.fullmatch, folders))


# images and masks ---------------------------------------------------------------------------------

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
    if len(core_words) == len(words):
        return folder
    return "_".join(core_words)


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
    if match is None:
        return stem
    image_length = len(match[1])
    return stem[:image_length]


def is_mask_suffix(suffix: str) -> bool:
    """Whether the end of a name means a mask: _mask, -seg, _L."""
    return bool(_MASK_NAME.fullmatch(f"a{suffix.lower()}"))
