"""differing_values: the features that differ in two records, with both values as short texts."""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Mapping, Sequence

from imagenet_prep.tfrecord.content import Value

_SHOWN_CHARACTERS = 60
_SHOWN_ITEMS = 8


def differing_values(
    first: Mapping[str, Value | str], second: Mapping[str, Value | str]
) -> dict[str, tuple[str, str]]:
    """Both values as text of each feature that differs."""
    differing = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    return {name: _both_in_words(first.get(name), second.get(name)) for name in differing}


def _both_in_words(first: Value | str | None, second: Value | str | None) -> tuple[str, str]:
    """Two values that differ, as texts that differ."""
    for in_words in (_in_words, _with_kind, _with_digest):
        texts = in_words(first), in_words(second)
        if texts[0] != texts[1]:
            break
    return texts


def _in_words(value: Value | str | None) -> str:
    """A value as text: one item is itself, none or several are a list."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    items = _items(value)
    if len(items) == 1 and value.kind != "steps":
        return _item_in_words(items[0])
    texts = [_item_in_words(item) for item in itertools.islice(items, _SHOWN_ITEMS)]
    if len(items) > _SHOWN_ITEMS:
        texts.append("...")
    return f"[{', '.join(texts)}]"


def _with_kind(value: Value | str | None) -> str:
    """A value as text and the kind of its feature."""
    if not isinstance(value, Value):
        return _in_words(value)
    return f"{_in_words(value)} ({value.kind or 'not set'})"


def _with_digest(value: Value | str | None) -> str:
    """A value as text and a digest of all its bits."""
    return f"{_in_words(value)} (SHA-256 {hashlib.sha256(repr(value).encode()).hexdigest()[:12]})"


def _items(value: Value) -> Sequence[object]:
    if isinstance(value.items, bytes):
        return struct.unpack(f"<{len(value.items) // 4}f", value.items)
    return value.items


def _item_in_words(item: object) -> str:
    if isinstance(item, Value):
        return _in_words(item)
    if isinstance(item, bytes) and len(item) > _SHOWN_CHARACTERS:
        return f"{len(item):,} bytes, SHA-256 {hashlib.sha256(item).hexdigest()[:12]}"
    if isinstance(item, bytes):
        return item.decode(errors="backslashreplace")
    return f"{item:.7g}" if isinstance(item, float) else str(item)
