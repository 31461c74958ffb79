"""note_of_call: a note that a plan keeps, for any folder -> the note for those of this call."""

from __future__ import annotations

from imagenet_prep.escaping import NAME, path_word, quoted
from imagenet_prep.hints import CONVERT_AGAIN
from imagenet_prep.storage.layout import Layout

SAME_RAW = " (with the same --raw, if you gave it)"
"""The option of a command in a kept note, which names no folder: a set can be moved."""

_CONVERT_AFTERWARDS = f", then {CONVERT_AGAIN}"


def note_of_call(note: str, layout: Layout, *, converts: bool = True) -> str:
    """The note with the folders of this call in its commands.

    Without ``converts``, no shards are made, and the note doesn't say to make them again.
    """
    text = str(note)
    for stage in ("annotate", "download"):
        folder = quoted(path_word(str(layout.data_dir)))
        text = text.replace(f"{NAME} {stage} DATA_DIR", f"{NAME} {stage} {folder}")
    raw = f" --raw {quoted(path_word(str(layout.raw)))}" if layout.raw else ""
    text = text.replace(SAME_RAW, raw)
    return text if converts else text.replace(_CONVERT_AFTERWARDS, "")
