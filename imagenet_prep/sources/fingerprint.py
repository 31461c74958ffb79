"""Fingerprints: rows of a Catalog and settings -> a digest of everything that decides a shard's
bytes.

That is the ordered items (name, label, words, boxes, length, columns), and the canonical form of
the settings. The place and age of the items, and of their masks, make no difference.
"""

from __future__ import annotations

import functools
import hashlib
import json

import numpy as np

from imagenet_prep.sources.catalog import MASK_STAMP, Catalog
from imagenet_prep.sources.names import Rows

_NARROW = 1 << 16  # smaller labels take 16 bits in a digest of names and sizes


class Fingerprints:
    """Computes fingerprints of rows of a table: each a SHA-256 of one column after the other,
    numbers little-endian.
    """

    def __init__(self, catalog: Catalog, settings: str) -> None:
        self._catalog = catalog
        self._settings = settings
        self._words = {0: bytes(32)}
        for label, (wnid, text) in catalog.classes.items():
            self._words[label] = _digest_of_words(wnid, text)

    def compute(self, rows: Rows) -> str:
        """The fingerprint of these rows, in this order."""
        picked = self._catalog.picked(rows)
        columns = {name: list(values) for name, values in sorted(picked.columns.items())}
        columns.pop(MASK_STAMP, None)
        labels = sorted(set(picked.labels.tolist()))
        box_counts = np.zeros(len(picked))
        if len(picked.box_starts):
            box_counts = np.diff(picked.box_starts)
        name_lengths = np.diff(picked.names.starts)
        head = json.dumps([len(picked), self._settings, columns])
        words = b"".join(self._words[label] for label in labels)
        digest = hashlib.sha256()
        _add(digest, head.encode())
        _add(digest, words)
        _add(digest, name_lengths.astype("<u4").tobytes())
        _add(digest, picked.names.blob.tobytes())
        _add(digest, picked.labels.astype("<u4").tobytes())
        _add(digest, picked.lengths.astype("<u8").tobytes())
        _add(digest, box_counts.astype("<u4").tobytes())
        _add(digest, picked.boxes.astype("<f4").tobytes())
        return digest.hexdigest()


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """Add a part after its length, so that no two parts run together."""
    length = len(part).to_bytes(8, "little")
    digest.update(length)
    digest.update(part)


@functools.lru_cache(1 << 15)
def _digest_of_words(wnid: str, text: str) -> bytes:
    """The digest of a class: two splits have the same classes."""
    words = json.dumps((wnid, text))
    return hashlib.sha256(words.encode()).digest()


def fingerprint(catalog: Catalog, rows: Rows, settings: str) -> str:
    """The fingerprint of these rows only."""
    return Fingerprints(catalog, settings).compute(rows)


def names_and_sizes(catalog: Catalog) -> str:
    """A digest (hex) of the names, lengths and labels of all rows, in listing order."""
    digest = hashlib.sha256(catalog.names.blob.data)
    digest.update(catalog.lengths.astype("<u8").tobytes())
    is_narrow = catalog.labels.max(initial=0) < _NARROW
    number_type = "<u2" if is_narrow else "<u4"
    labels = catalog.labels.astype(number_type)
    digest.update(labels.tobytes())
    return digest.hexdigest()
