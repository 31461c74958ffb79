"""What a refused call says of its options is true of this call; one row a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import prep_here

REFUSED: dict[str, tuple[str, str]] = {
    "boxes of Kaggle": (
        "download d --only boxes --source kaggle",
        "expected train,validation, or no --only: Kaggle's one zip holds everything",
    ),
    "boxes of Hugging Face": (
        "download d --only boxes --source huggingface",
        "expected train or validation, or both",
    ),
    "--list and a folder": ("init --list d", "or --list alone"),
    "a recipe in two places": (
        "init --example food101 a.yaml --output b.yaml",
        "with at most one file to write",
    ),
    "--consume by --set": (
        "run d --set consume=1 --engine ray",
        "--set consume=1 with --engine ray",
    ),
    "a format": ("export zip .", "'FORMAT': 'zip' is not one of 'arrayrecord', 'croissant', "),
    "a folder of shards": ("status . --output none", "expected a folder of shards"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_a_refused_call(call: str, words: str, tmp_path: Path) -> None:
    """Each row was once another sentence, which was false there."""
    ran = prep_here(*call.split(), "--quiet", cwd=tmp_path)
    assert ran.returncode == 2
    assert words in ran.stderr
