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
        self._catalog, self._settings = catalog, settings
        self._words = {label: _digest_of_words(*each) for label, each in catalog.classes.items()}
        self._words[0] = bytes(32)

    def of(self, rows: Rows) -> str:
        """The fingerprint of these rows, in this order."""
        found = self._catalog.picked(rows)
        columns = {
            name: list(values)
            for name, values in sorted(found.columns.items())
            if name != MASK_STAMP
        }
        digest = hashlib.sha256()
        for part in (
            json.dumps([len(found), self._settings, columns]).encode(),
            b"".join(self._words[label] for label in sorted(set(found.labels.tolist()))),
            np.diff(found.names.starts).astype("<u4").tobytes(),
            found.names.blob.tobytes(),
            found.labels.astype("<u4").tobytes(),
            found.lengths.astype("<u8").tobytes(),
            (np.diff(found.box_starts) if len(found.box_starts) else np.zeros(len(found)))
            .astype("<u4")
            .tobytes(),
            found.boxes.astype("<f4").tobytes(),
        ):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()


@functools.lru_cache(1 << 15)
def _digest_of_words(wnid: str, text: str) -> bytes:
    """The digest of a class: two splits have the same classes."""
    return hashlib.sha256(json.dumps((wnid, text)).encode()).digest()


def fingerprint(catalog: Catalog, rows: Rows, settings: str) -> str:
    """The fingerprint of these rows only."""
    return Fingerprints(catalog, settings).of(rows)


def names_and_sizes(catalog: Catalog) -> str:
    """A digest (hex) of the names, lengths and labels of all rows, in listing order."""
    digest = hashlib.sha256(catalog.names.blob.data)
    digest.update(catalog.lengths.astype("<u8").tobytes())
    digest.update(
        catalog.labels.astype("<u2" if catalog.labels.max(initial=0) < _NARROW else "<u4").tobytes()
    )
    return digest.hexdigest()
