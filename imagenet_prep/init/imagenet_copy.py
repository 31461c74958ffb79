"""note_on_imagenet, converting_hint: a copy of ImageNet -> the command of convert that reads it
without a recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.storage.layout import Layout


def converting_hint(sentence: str, folder: Path, *, is_part: bool = False) -> Hint:
    """The command that reads the copy in a folder, or a part of one, after a sentence."""
    data_dir = _data_dir_of(folder)
    settings: list[tuple[str, object]] = [("raw", folder)]
    if is_part:
        settings.append(("allow_incomplete", True))
    return Hint(f"{sentence}: ", command("convert", data_dir, tuple(settings)))


def _data_dir_of(folder: Path) -> Path:
    return Path(f"{folder.resolve().name}-shards")


def note_on_imagenet(
    folder: Path, class_names: Sequence[str], image_names: Sequence[str]
) -> list[Hint]:
    """The note on classes and images with the names of ImageNet's, in a folder where convert finds
    them.
    """
    from imagenet_prep.ilsvrc2012 import facts
    from imagenet_prep.ilsvrc2012.plan_inputs import find_sources

    if set(class_names) != {*facts.synsets()}:
        return []
    if not all(name.endswith(".JPEG") for name in image_names):
        return []
    try:
        sources = find_sources(Layout(_data_dir_of(folder), raw=folder))
    except InputError:  # convert would fail, too
        return []
    if facts.TRAIN not in sources:
        return []
    note = (
        "these are ImageNet's classes; convert reads such a copy, and any boxes in it, "
        "without a recipe"
    )
    all_images = sum(facts.IMAGES.values())
    is_part = len(image_names) < all_images
    if is_part:
        note += f" (this one has {len(image_names):,} of {all_images:,} images)"
    return [converting_hint(note, folder, is_part=is_part)]


def lacks_archives(raw_dir: Path) -> bool:
    """Whether an archive of images is missing, or another than the published one by its size."""
    from imagenet_prep.ilsvrc2012 import facts

    for split in facts.SPLITS:
        archive = facts.ARCHIVES[split]
        path = raw_dir / archive.filename
        if not path.is_file() or path.stat().st_size != archive.size:
            return True
    return False
