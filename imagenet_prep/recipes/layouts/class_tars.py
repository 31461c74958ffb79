"""Class tars: a tar a class, as ImageNet-21k has them. The tars are read in place."""

from __future__ import annotations

import re
from collections import Counter

from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels import class_order
from imagenet_prep.recipes.layouts import CERTAIN, LIKELY, ONLY_IF_ASKED, Description, Proposal, Reading, describe_rest
from imagenet_prep.recipes.layouts.plain_tars import add_members, content_of, formats, is_class_tars
from imagenet_prep.sources.tars import folder_of_tar
from imagenet_prep.text import listed, number_of

_WNID = re.compile(r"n\d{8}")


def recognise(inspection: Inspection) -> Reading | None:
    """Several tars whose files are in no folder."""
    content = content_of(inspection)
    if content is None or len(inspection.archives) < 2:
        return None
    counts = Counter({_class_of(name): 0 for name in inspection.archives})
    for name, listing in inspection.archives.items():
        inside = [each for each in listing.names if is_of(content, each)]
        if any("/" in each for each in inside):
            return None
        counts[_class_of(name)] += len(inside)
    classes = class_order(counts)
    are_known = all(map(_WNID.fullmatch, classes))
    certainty = CERTAIN if are_known else LIKELY if is_class_tars(inspection) else ONLY_IF_ASKED
    if inspection.items:
        certainty = ONLY_IF_ASKED
    evidence = f"{number_of(len(classes), 'tar')}, their names: {listed(classes)}"
    meaning = f"each tar is a class: {listed(classes)}"
    value = {name: counts[name] for name in classes if counts[name]}
    return Reading(certainty, (evidence,), meaning, tuple(formats(inspection, content)), value)


def describe(inspection: Inspection, reading: Reading) -> Description:
    """All files in the tars."""
    return add_members(inspection, describe_rest(inspection, reading.meaning, alone=list(inspection.archives)))


def recipe(inspection: Inspection, reading: Reading) -> Proposal:
    """A source of tars, each as a folder."""
    content = content_of(inspection)
    assert content is not None
    rows = sorted(
        (f"{_class_of(name)}/{each}", length)
        for name, listing in inspection.archives.items()
        for each, length in zip(listing.names, listing.lengths.tolist(), strict=True)
        if is_of(content, each)
    )
    names, lengths = [name for name, _ in rows], [length for _, length in rows]
    archives = tuple(inspection.archives)
    return Proposal("tar", content, names, lengths, archives=archives, tar_folders=True, classes=reading.value)


def _class_of(name: str) -> str:
    return folder_of_tar(name.rpartition("/")[2]).rstrip("/")
