"""make fuzz without its fuzzer: every input of the corpus again, within its bounds;
and the tools around it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from existing import existing

ROOT = Path(__file__).resolve().parent.parent
FUZZING = ROOT / "scripts" / "fuzzing"
CORPUS = ROOT / "tests" / "corpus"
TARGETS = [path.name for path in existing(CORPUS, "*")]


@pytest.fixture(scope="module")
def replayed() -> dict[str, dict[str, Any]]:
    """What each target says to its corpus, in a process of its own,
    so that memory is that of the inputs alone.
    """
    command = [sys.executable, FUZZING / "replay.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    return {result["target"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_of_the_corpus_meets_only_documented_exceptions_within_its_bounds(
    replayed: dict[str, dict[str, Any]], target: str
) -> None:
    """A second and 300 MB an input; what once was a finding is none."""
    result = replayed[target]
    assert result["inputs"] == len(existing(CORPUS / target, "*"))
    assert result["findings"] == {}


def test_every_target_has_a_corpus_and_the_corpus_is_small(
    replayed: dict[str, dict[str, Any]],
) -> None:
    """Seeds for each; at most 30 files and 100 kB a target, 2 MB in all."""
    sizes = {
        target: [path.stat().st_size for path in existing(CORPUS / target, "*")]
        for target in TARGETS
    }
    assert sorted(replayed) == TARGETS
    assert all(existing(CORPUS / target, "seed-*") for target in TARGETS)
    assert max(map(len, sizes.values())) <= 30
    assert max(map(sum, sizes.values())) <= 100_000
    assert sum(map(sum, sizes.values())) <= 2_000_000


# what watches over an input -----------------------------------------------------------------------


# changes that get past checksums ------------------------------------------------------------------
