"""The rehearsal at full count, at a thousandth of it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from imagenet_prep.ilsvrc2012 import facts

pytestmark = pytest.mark.project

SCRIPT = Path(__file__).parents[1] / "scripts" / "rehearsal.py"
SCALE = 0.001


@pytest.fixture(scope="module")
def rehearsal() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("rehearsal", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["rehearsal"] = module
    spec.loader.exec_module(module)
    return module


def test_the_counts_are_the_official_ones(rehearsal: ModuleType) -> None:
    """At full scale classes have 732 to 1300 images, and all totals are those of ILSVRC2012."""
    counts = rehearsal.official(1)
    assert (len(counts.classes), min(counts.classes), max(counts.classes)) == (1000, 732, 1300)
    assert (counts.train, counts.validation) == (facts.IMAGES["train"], facts.IMAGES["validation"])
    assert (counts.box_files, counts.boxes) == (facts.BOX_FILES, facts.BOXES)
    assert counts.shards == facts.SHARDS


def test_a_small_rehearsal_ends_well(rehearsal: ModuleType, tmp_path: Path) -> None:
    """Archives are built, converted and verified, with the totals that were built;
    a table says what it took.
    """
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--scale", str(SCALE)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "all totals are right: 615 boxes, 16 shards" in ended.stdout
    for name in ("annotate", "convert", "verify"):
        [row] = [line.split() for line in ended.stdout.splitlines() if line.startswith(name)]
        assert len(row) == 7
        assert float(row[4]) > 10  # the parent's memory in MB: no Python takes less

    counts = replace(rehearsal.official(SCALE), boxes=616)
    differences = list(rehearsal.Rehearsal(tmp_path, counts, SCALE).differences())
    assert [each.partition(":")[0] for each in differences] == ["boxes", "train"]
