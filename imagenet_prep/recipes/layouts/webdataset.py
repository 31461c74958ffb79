"""WebDataset: tars in which an image and its label have one stem. They are recognised, and not read yet."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import CERTAIN, Description, Proposal, Reading, as_command, describe_rest, plain_tars
from imagenet_prep.text import listed

_LABELS = (".cls", ".json", ".txt", ".cls.txt")


def recognise(inspection: Inspection) -> Reading | None:
    """Members such as 1.jpg and 1.cls."""
    for archive, listing in inspection.archives.items():
        names = set(listing.names)
        for name in names:
            stem = name.rpartition(".")[0]
            found = [f"{stem}{ending}" for ending in _LABELS if f"{stem}{ending}" in names]
            if is_of("image", name) and found:
                return _refusal(inspection, archive, [name, *found])
    return None


def _refusal(inspection: Inspection, archive: str, names: list[str]) -> Reading:
    evidence = f"{archive} holds {listed(names)}"
    what = f"{inspection.folder} holds WebDataset tars: {evidence}"
    asked = as_command(inspection, "plain-tars")
    hint = f"unpack them and label the images in a CSV; {asked} takes the images without labels"
    fault = InputError(what, "their labels are not read yet", hint)
    return Reading(CERTAIN + 1, (evidence,), "WebDataset samples", (fault,))


def describe(inspection: Inspection, reading: Reading) -> Description:
    """Nothing is taken."""
    return describe_rest(inspection, reading.meaning, from_tars=True)


def recipe(inspection: Inspection, reading: Reading) -> Proposal:
    """The recipe of tars: this layout is refused before."""
    return plain_tars.recipe(inspection, reading)
