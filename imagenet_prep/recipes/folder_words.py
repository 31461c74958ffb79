"""Words in the names of folders that are hardly ever classes."""

from __future__ import annotations

import re
from collections.abc import Collection

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
    return re.sub(r"[^a-z0-9]+", " ", folder.lower()).strip()


def is_no_class(folder: str) -> bool:
    """Whether a folder has a name that classes hardly ever have:
    thumbnails, query, depth, images.
    """
    return bool(_NO_CLASSES.fullmatch(_words(folder)))


def is_unlabelled(folder: str) -> bool:
    """Whether a folder next to splits has a name that says that its images have no labels."""
    return bool(_UNLABELLED.fullmatch(_words(folder)))


def are_numbers(folders: Collection[str]) -> bool:
    """Whether several folders are called by days, by numbers or as parts."""
    return len(folders) > 1 and all(map(_NO_NAMES.fullmatch, folders))
