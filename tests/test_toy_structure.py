"""A structure is one new file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_folders import images, taken
from test_folders import check

from imagenet_prep.engines import make_engine
from imagenet_prep.init import structures
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.init import init
from imagenet_prep.storage.layout import Layout

ENGINE = make_engine("threads", 1)

TOY = '''
"""Mirrors: folders left and right of the same scene, whose images are no classes."""

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal


def recognise(inspection: Inspection) -> Interpretation | None:
    """Every image is in left or right."""
    if {name.partition("/")[0] for name in inspection.items} != {"left", "right"}:
        return None
    proposal = Proposal("files", inspection.content, inspection.items)
    meaning = "pairs of a scene"
    return Interpretation(CERTAIN, ("left and right",), meaning, proposal, is_labelled=False)


STRUCTURES = {"mirrors": recognise}
'''


@pytest.mark.parametrize("is_there", [True, False])
def test_a_structure_is_one_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """With the file, init takes the folder by it, and the set is right;
    without it, the folders are classes.
    """
    room = tmp_path / "room"
    room.mkdir()
    if is_there:
        (room / "mirrors.py").write_text(TOY)
    monkeypatch.setattr(structures, "__path__", [*structures.__path__, str(room)])
    monkeypatch.delitem(sys.modules, f"{structures.__name__}.mirrors", raising=False)
    names = ["left/1.jpg", "left/2.jpg", "right/3.jpg"]
    made = taken(
        images(*names),
        train={name[-5:]: None if is_there else name.partition("/")[0] for name in names},
    )
    made.save(tmp_path / "data")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert summary.structure == ("mirrors" if is_there else "class-folders")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    check(tmp_path / "out", made)
