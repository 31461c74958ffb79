"""split_problems, wrong_totals: what the shards of a recipe's set hold -> the problems, by its
manifest and by the totals that the recipe expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from imagenet_prep.model import Problem
from imagenet_prep.storage.layout import grown_from, split_of
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_shards import Checked
    from imagenet_prep.checks.inventory import Inventory

_ONE = {"images": "image", "classes": "class"}
"""One of what a total counts."""


def split_problems(split: str, inventory: Inventory, checked: Checked) -> list[Problem]:
    """The problems of the shards of a split; if there are none, those of its totals."""
    from imagenet_prep.checks.checked_shards import check_totals

    manifest = inventory.manifest
    shards = inventory.of(split)
    reports = checked.of(shards)
    problems = [problem for report in reports for problem in report.problems]
    is_whole = not problems and len(reports) == len(shards)
    if manifest and is_whole and split in manifest.totals:
        label_count = len(checked.labels[split])
        problems += check_totals(split, reports, label_count, manifest, counts_alone=True)
    return problems


def wrong_totals(
    expected: Mapping[str, Any], images: Mapping[str, int], labels: Mapping[str, set[int]]
) -> Iterator[Problem]:
    """The totals that are not those that the recipe expects."""
    from imagenet_prep.recipes.rules import kind_of_total, remedy_of_total, totals_in

    for split, name, count, actual in totals_in(expected, images, labels):
        is_counted = actual or name == "images"  # labels under other names are not counted
        if actual != count and is_counted:
            kind = kind_of_total(name, count, actual)
            message = f"expected {number_of(count, _ONE[name], name)}, got {actual:,}"
            remedy = remedy_of_total(name, count, actual, " and make the set again")
            yield Problem(kind, split or name, message, remedy)


def count_set_aside(inventory: Inventory) -> Counter[str]:
    """How many damaged images each split leaves out."""
    counts = Counter[str]()
    for name, info in inventory.infos.items():
        split = base_split(split_of(name))
        counts[split] += len(info.set_aside)
    return counts


def base_split(name: str) -> str:
    """The split that a growth is of; a split itself."""
    split, _ = grown_from(name)
    return split
