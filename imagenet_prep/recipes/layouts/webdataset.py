"""WebDataset: tars in which an image and its label, caption or JSON have one stem: 1.jpg, 1.cls, 1.txt, 1.json."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts._sample_layout import SampleLayout


def _find(inspection: Inspection) -> Sequence[str]:
    """All tars, if one holds members such as 1.jpg and 1.cls."""
    for listing in inspection.archives.values():
        stems = {name[: -len(end)] for name in listing.names for end in (".cls", ".json", ".txt") if name.endswith(end)}
        if any(is_of("image", name) and name.rpartition(".")[0] in stems for name in listing.names):
            return list(inspection.archives)
    return ()


_LAYOUT = SampleLayout("webdataset", _find)
recognise, describe, recipe = _LAYOUT.recognise, _LAYOUT.describe, _LAYOUT.recipe
