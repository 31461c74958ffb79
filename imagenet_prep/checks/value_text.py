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
    first_record: Mapping[str, Value | str], second_record: Mapping[str, Value | str]
) -> dict[str, tuple[str, str]]:
    """Both values as text of each feature that differs."""
    differing = sorted(
        name
        for name in first_record.keys() | second_record.keys()
        if first_record.get(name) != second_record.get(name)
    )
    return {
        name: _both_in_words(first_record.get(name), second_record.get(name)) for name in differing
    }


def _both_in_words(
    first_value: Value | str | None, second_value: Value | str | None
) -> tuple[str, str]:
    """Two values that differ, as texts that differ."""
    for in_words in (_in_words, _with_kind, _with_digest):
        texts = in_words(first_value), in_words(second_value)
        if texts[0] != texts[1]:
            break
    return texts


def _in_words(feature_value: Value | str | None) -> str:
    """A value as text: one item is itself, none or several are a list."""
    if feature_value is None:
        return "none"
    if isinstance(feature_value, str):
        return feature_value
    items = _items(feature_value)
    if len(items) == 1 and feature_value.kind != "steps":
        return _item_in_words(items[0])
    texts = [_item_in_words(item) for item in itertools.islice(items, _SHOWN_ITEMS)]
    if len(items) > _SHOWN_ITEMS:
        texts.append("...")
    return f"[{', '.join(texts)}]"


def _with_kind(feature_value: Value | str | None) -> str:
    """A value as text and the kind of its feature."""
    if not isinstance(feature_value, Value):
        return _in_words(feature_value)
    return f"{_in_words(feature_value)} ({feature_value.kind or 'not set'})"


def _with_digest(feature_value: Value | str | None) -> str:
    """A value as text and a digest of all its bits."""
    digest = hashlib.sha256(repr(feature_value).encode()).hexdigest()
    return f"{_in_words(feature_value)} (SHA-256 {digest[:12]})"


def _items(feature_value: Value) -> Sequence[object]:
    if isinstance(feature_value.items, bytes):
        return struct.unpack(f"<{len(feature_value.items) // 4}f", feature_value.items)
    return feature_value.items


def _item_in_words(item: object) -> str:
    if isinstance(item, Value):
        return _in_words(item)
    if isinstance(item, bytes) and len(item) > _SHOWN_CHARACTERS:
        return f"{len(item):,} bytes, SHA-256 {hashlib.sha256(item).hexdigest()[:12]}"
    if isinstance(item, bytes):
        return item.decode(errors="backslashreplace")
    return f"{item:.7g}" if isinstance(item, float) else str(item)
