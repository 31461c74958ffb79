"""note_of_call, note_of_reading: a note that a plan keeps, for any folder -> the note for those of
this call, which makes shards or only reads the raw data.
"""

from __future__ import annotations

import sys

from imagenet_prep.escaping import NAME, OptionValues, path_word, quoted, rerun
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.storage.layout import Layout

SAME_RAW = " (with the same --raw, if you gave it)"
"""The option of a command in a kept note, which names no folder: a set can be moved."""

WHEN_STARTED = "when this set was started"
"""The moment that a kept note is about."""

WILL_BE_EMPTY = "of these will be empty"
"""The part of a note on the number of shards, which means nothing without them."""

_OF_READING = {
    f"were there {WHEN_STARTED}": "are there",
    f"was there {WHEN_STARTED}": "is there",
    f", then {CONVERT_AGAIN}": "",
}
"""The words of a conversion, and those of reading."""


def note_of_call(note: str, layout: Layout) -> str:
    """The note with the folders of this call in its commands, and this call itself, if it is a
    command that makes shards.
    """
    text = str(note)
    folder = quoted(path_word(str(layout.data_dir)))
    for stage in ("annotate", "download"):
        text = text.replace(f"{NAME} {stage} DATA_DIR", f"{NAME} {stage} {folder}")
    raw = f" --raw {quoted(path_word(str(layout.raw)))}" if layout.raw else ""
    text = text.replace(SAME_RAW, raw)
    before, again, after = text.partition(CONVERT_AGAIN)
    if not again or sys.argv[1:2] not in (["convert"], ["run"]):
        return text
    overwrite: OptionValues = () if "--overwrite" in sys.argv else (("overwrite", True),)
    return Hint(before, rerun(overwrite), after)


def note_of_reading(note: str, layout: Layout) -> str:
    """The note for a call that makes no shards; "" if it is about shards."""
    if WILL_BE_EMPTY in note:
        return ""
    text = str(note)
    for words, words_of_reading in _OF_READING.items():
        text = text.replace(words, words_of_reading)
    return note_of_call(text, layout)
