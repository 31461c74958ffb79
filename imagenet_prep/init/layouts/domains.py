"""CycleGAN's folders: trainA, trainB, testA and testB are splits of two domains,
which are the classes.
"""

from __future__ import annotations

import re

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.recipes.splits import split_name
from imagenet_prep.text import listed

_DOMAIN = re.compile(r"(train|val|valid|validation|test)[ _-]?([A-Z])")


def recognise(inspection: Inspection) -> Interpretation | None:
    """Every image is in a folder of a split and a letter;
    each split has the same letters, two at least.
    """
    folders = {name.rpartition("/")[0] for name in inspection.items}
    matches = {folder: _DOMAIN.fullmatch(folder.rpartition("/")[2]) for folder in folders}
    parts = {folder: (split_name(match[1]), match[2]) for folder, match in matches.items() if match}
    splits = dict.fromkeys(split for split, _ in parts.values())
    domains = sorted({domain for _, domain in parts.values()})
    is_whole = len(parts) == len(folders) == len(splits) * len(domains) == len(set(parts.values()))
    if not is_whole or len(domains) < 2 or "train" not in splits:
        return None
    assert inspection.content is not None
    labels: dict[str, str] = {}
    lists: dict[str, list[str]] = {split: [] for split in splits}
    for name in inspection.items:
        split, domain = parts[name.rpartition("/")[0]]
        labels[name] = domain
        lists[split].append(name)
    return Interpretation(
        CERTAIN,
        (f"folders of splits and of the domains {listed(domains)}: {listed(sorted(folders))}",),
        f"the letters of the folders are the classes: {listed(domains)}",
        Proposal(
            "files",
            inspection.content,
            list(inspection.items),
            written_lists=lists,
            written_labels=labels,
        ),
        labelled=len(labels),
        classes=len(domains),
    )


LAYOUTS = {"domains": recognise}
