"""converting_hint: a copy of ImageNet -> the command of convert that reads it without a recipe."""

from __future__ import annotations

from pathlib import Path

from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint


def converting_hint(sentence: str, folder: Path) -> Hint:
    """The command that reads the copy in a folder, after a sentence."""
    data_dir = Path(f"{folder.resolve().name}-shards")
    return Hint(f"{sentence}: ", command("convert", data_dir, (("raw", folder),)))
