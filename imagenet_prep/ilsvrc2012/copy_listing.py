"""CopyListing: a copy of ILSVRC2012 as it was listed -> what is missing, misplaced, doubled or
foreign, and the level of its images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np
from msgspec import Struct

from imagenet_prep.checks.raw_check import ImageFindings, RawSplit
from imagenet_prep.checks.verdict import Depth, ReasonedLevel
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.completeness import (
    MAY_BE_ENCODED_AGAIN,
    find_encoded_again,
    other_odd_images,
    remedy_encoded_again,
)
from imagenet_prep.ilsvrc2012.digests import Digests
from imagenet_prep.ilsvrc2012.planning import sampled_repairs
from imagenet_prep.images.prepare import repaired_images
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.tar_members import BLOCK
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import number_of

GET_MISSING = "get the missing images, or convert this part of the data set with --allow-incomplete"

_CHECKED = {"quick": "", "full": ", all with sound headers", "decode": ", all sound"}
"""The result of the check of images without a problem, by its depth."""

_RECORD = 20 * BLOCK


class CopyListing(Struct, frozen=True):
    """A copy of ILSVRC2012 as it was listed; see RawListing.

    Args:
        layout: where it is.
        splits: those that are there.
        problems: what keeps convert from reading it, and what is missing if that is not allowed.
        depth: that of the check of its images.
        notes: remarks that are not problems.
        skipped: how many files are no images of the data set.
        lacking: what is missing although that is allowed, as text; empty if nothing is.
        digests: what the archives' digests prove.
    """

    layout: Layout
    splits: tuple[RawSplit, ...]
    problems: tuple[Problem, ...]
    depth: Depth
    notes: tuple[str, ...]
    skipped: int
    lacking: tuple[str, ...]
    digests: Digests
    dataset: ClassVar[str] = facts.NAME

    def judge(self, findings: ImageFindings) -> tuple[tuple[Problem, ...], ReasonedLevel]:
        """Whether the images can be the published ones; see RawListing."""
        repairs: Iterable[str] = findings.odd.names
        if self.depth == "quick":
            repairs = sampled_repairs(split.catalog for split in self.splits)
        encoded_again = find_encoded_again(repairs)
        level = self._level(findings)
        if not encoded_again:
            return (), level
        detail = f"{MAY_BE_ENCODED_AGAIN}: {encoded_again}"
        remedy = remedy_encoded_again(self.layout.raw_dir)
        problem = Problem(ProblemKind.WRONG_CONTENT, str(self.layout.raw_dir), detail, remedy)
        return (problem,), level

    def _level(self, findings: ImageFindings) -> ReasonedLevel:
        images = sum(len(split.catalog) for split in self.splits)
        if self.lacking:
            checked = _CHECKED[self.depth]
            return ReasonedLevel(
                "part", f"{number_of(images, 'image')}{checked}. Missing: {self._shown_lacking}."
            )
        if self.depth == "quick":
            return ReasonedLevel("complete", "")
        if self._is_published:
            return ReasonedLevel(
                "official", "the archives have the published MD5: every byte is the published one."
            )
        all_images = f"all {images:,} images of {facts.NAME} are there."
        doubts = list(self._doubts(findings))
        if self.depth == "full":
            doubts.append("They were not decoded: --depth decode finds damage inside.")
        if doubts:
            return ReasonedLevel("as listed", f"{all_images} {' '.join(doubts)}")
        evidence = "Their names, numbers and odd images are the published ones"
        if self._has_published_sizes:
            evidence += "; so are their sizes, packed as the published archives are"
        return ReasonedLevel("complete", f"{all_images} {evidence}.")

    @property
    def _is_published(self) -> bool:
        """Whether the archives of both splits have the published MD5."""
        published = [split for split in self.splits if split.name in self.digests.published]
        return len(published) == len(facts.SPLITS)

    @property
    def _shown_lacking(self) -> str:
        """The first two gaps, which are sentences with commas, and the number of the others."""
        shown = list(self.lacking[:2])
        hidden = len(self.lacking) - len(shown)
        if hidden:
            shown.append(f"{hidden:,} more")
        return "; ".join(shown)

    def _doubts(self, findings: ImageFindings) -> Iterator[str]:
        """The evidence that the images are not the published ones."""
        yield from self.digests.others
        odd_images = repaired_images(findings.odd.names).keys()
        published = frozenset().union(*facts.ODD_IMAGES.values())
        if odd_images != published:
            yield other_odd_images(odd_images, published)
        if findings.twin_count and not self._has_published_sizes:
            pairs = number_of(findings.twin_count, "pair of images has", "pairs of images have")
            yield f"{pairs} the same bytes: one may have taken the place of another."

    @property
    def _has_published_sizes(self) -> bool:
        """Whether the lengths of the images make archives of the published sizes."""
        archives = facts.ARCHIVES
        return all(packed_size(split.catalog) == archives[split.name].size for split in self.splits)


def packed_size(catalog: Catalog) -> int:
    """The bytes of the official archive with the images of a split:
    train as tars by class, in a tar.
    """
    members = BLOCK + -(-catalog.lengths.astype(np.int64) // BLOCK) * BLOCK
    if catalog.split != facts.TRAIN:
        return _tar_size(int(members.sum()))
    labels = catalog.labels.astype(np.int64)
    by_class = np.zeros(facts.CLASSES + 1, np.int64)
    np.add.at(by_class, labels, members)
    tars = [BLOCK + _tar_size(size) for size in by_class.tolist() if size]
    return _tar_size(sum(tars))


def _tar_size(size: int) -> int:
    """The bytes of a tar whose members take ``size``, as GNU tar ends it:
    two empty blocks, in records of 20 blocks.
    """
    return -(-(size + 2 * BLOCK) // _RECORD) * _RECORD
