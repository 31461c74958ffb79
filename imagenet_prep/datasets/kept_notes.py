"""note_of_call, note_of_reading: a note that a plan keeps, for any folder -> the note for those of
this call, which makes shards or only reads the raw data.
"""

from __future__ import annotations

from imagenet_prep.escaping import NAME, path_word, quoted
from imagenet_prep.hints import CONVERT_AGAIN
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
    """The note with the folders of this call in its commands."""
    text = str(note)
    folder = quoted(path_word(str(layout.data_dir)))
    for stage in ("annotate", "download"):
        text = text.replace(f"{NAME} {stage} DATA_DIR", f"{NAME} {stage} {folder}")
    raw = f" --raw {quoted(path_word(str(layout.raw)))}" if layout.raw else ""
    return text.replace(SAME_RAW, raw)


def note_of_reading(note: str, layout: Layout) -> str:
    """The note for a call that makes no shards; "" if it is about shards."""
    if WILL_BE_EMPTY in note:
        return ""
    text = note_of_call(note, layout)
    for words, words_of_reading in _OF_READING.items():
        text = text.replace(words, words_of_reading)
    return text
