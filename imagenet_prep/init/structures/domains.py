"""CycleGAN's folders: trainA, trainB, testA and testB are splits of two domains,
which are the classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.text import listed

_DOMAIN = re.compile(r"(train|val|valid|validation|test)[ _-]?([A-Z])")


def recognise(inspection: Inspection) -> Interpretation | None:
    """Every image is in a folder of a split and a letter;
    each split has the same letters, two at least.
    """
    folders = sorted({name.rpartition("/")[0] for name in inspection.items})
    parts = _parts_of(folders)
    splits = {split for split, _ in parts.values()}
    domains = sorted({domain for _, domain in parts.values()})
    if len(domains) < 2 or "train" not in splits:
        return None
    all_pairs = len(splits) * len(domains)
    pairs = set(parts.values())
    if not len(folders) == len(parts) == len(pairs) == all_pairs:
        return None
    assert inspection.content is not None
    labels: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for name in inspection.items:
        folder = name.rpartition("/")[0]
        split, domain = parts[folder]
        labels[name] = domain
        lists.setdefault(split, []).append(name)
    evidence = f"folders of splits and of the domains {listed(domains)}: {listed(folders)}"
    proposal = Proposal(
        "files",
        inspection.content,
        list(inspection.items),
        written_lists=lists,
        written_labels=labels,
    )
    return Interpretation(
        CERTAIN,
        (evidence,),
        f"the letters of the folders are the classes: {listed(domains)}",
        proposal,
        labelled=len(labels),
        classes=len(domains),
    )


def _parts_of(folders: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The split and the domain of each folder that is called by them."""
    parts: dict[str, tuple[str, str]] = {}
    for folder in folders:
        match = _DOMAIN.fullmatch(base_name(folder))
        if match:
            parts[folder] = split_name(match[1]), match[2]
    return parts


STRUCTURES = {"domains": recognise}
