"""What a refused call says of its options is true of this call; one row a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import prep_here

REFUSED: dict[str, tuple[str, str]] = {
    "boxes of Kaggle": (
        "download d --only boxes --source kaggle",
        "Kaggle has one zip with everything\nleave --only out",
    ),
    "boxes of Hugging Face": (
        "download d --only boxes --source huggingface",
        "train and validation images, and nothing else",
    ),
    "boxes of Hugging Face, with images": (
        "download d --only train,boxes --source huggingface",
        "--only train,boxes can't be used with --source huggingface",
    ),
    "init alone": ("init", "init requires a folder or a file of data"),
    "--list and a folder": ("init --list d", "leave the rest out: imagenet-prep init --list"),
    "a recipe in two places": (
        "init --example food101 a.yaml --output b.yaml",
        "at most one file to write",
    ),
    "a setting without a value": (
        "convert d --set quality",
        "--set quality has no value\nexpected --set quality=VALUE",
    ),
    "--consume by --set": (
        "run d --set consume=1 --engine ray",
        "--set consume=1 can't be used with --engine ray",
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
