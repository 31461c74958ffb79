"""weigh: which explanation of a set's labels a network's probabilities support, and by what odds.

An explanation says which class of the network each image belongs to: the labels as they are, moved
by one, in another known order. Its evidence for one image is log10 of the probability that the
network gives to that class, relative to one in a thousand. Evidence adds up over images: 3 more
than another explanation are odds of 1,000 to 1.

If the network's probabilities are honest, a wrong explanation beats the right one by that much in
at most one of 1,000 sets (Markov's inequality), whatever the number of images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imagenet_prep.ilsvrc2012 import facts

Probabilities = NDArray[np.float32]
"""Of each image (rows) for each of the network's 1000 classes (columns)."""

Indices = NDArray[np.int64]

ENOUGH = 3.0
"""Decimal logarithm of the odds that decide: 1,000 to 1."""

NONE = -1
"""The class of an image whose label means no class."""

# the share of images that the network sees quite differently: one of them costs 1.3, and not
# infinity
_DOUBT = 0.05


@dataclass(frozen=True)
class LabelledImages:
    """What a set says about the images of a sample.

    Attributes:
        order: the network's class of each of the set's classes, in the order of their labels; NONE
            for a number that is no label.
        positions: the place of each image's label in that order; some may be outside of it.
        by_wnid: the network's class by the WordNet id in each record; NONE where there is none.
    """

    order: Indices
    positions: Indices
    by_wnid: Indices

    def take(self, order: Indices, positions: Indices) -> Indices:
        """The entry of ``order`` at each position; NONE outside of it."""
        is_inside = (positions >= 0) & (positions < len(order))
        return np.where(is_inside, order[positions.clip(0, len(order) - 1)], NONE)


@dataclass(frozen=True)
class Explanation:
    """One way to read the labels.

    Attributes:
        name: for the table.
        reason: what is wrong with the labels if this explanation is right; "" for the labels as
        they are. classes: the network's class of each image.
    """

    name: str
    reason: str
    classes: Indices


_ONE_MORE = "labels are moved by one: 0 is the background class?"
_ONE_LESS = "labels are moved by one: 0 is the first class, and not the background?"
_BY_WNID = "labels are wrong; the WordNet ids of the records are right"


def explanations(images: LabelledImages) -> list[Explanation]:
    """The labels as they are, then every known way to get them wrong that
    differs from those before it.
    """
    order, positions = images.order, images.positions
    stated = images.take(order, positions)
    official = np.arange(facts.CLASSES)
    one_up = np.where(stated == NONE, NONE, images.take(official, stated + 1))
    known = [
        Explanation("as they are", "", stated),
        Explanation("one too high", _ONE_MORE, images.take(order, positions - 1)),
        Explanation("one too low", _ONE_LESS, images.take(order, positions + 1)),
        Explanation("one too high among all 1000", _ONE_MORE, images.take(official, stated - 1)),
        Explanation("one too low among all 1000", _ONE_LESS, one_up),
    ]
    if not (order == NONE).any():
        known += _other_orders(images)
    if (images.by_wnid != NONE).any():
        known.append(Explanation("by the records' WordNet ids", _BY_WNID, images.by_wnid))
    return _without_twins(known)


def _other_orders(images: LabelledImages) -> list[Explanation]:
    order, positions = images.order, images.positions
    known: list[Explanation] = []
    for name, key in _SORT_KEYS.items():
        places = np.array(
            sorted(range(len(order)), key=lambda place: key(place, int(order[place])))
        )
        reason = f"labels count the classes in another order: {name}"
        backwards = f"{reason}, converted in the wrong direction"
        known.append(Explanation(name, reason, images.take(order[places], positions)))
        known.append(
            Explanation(
                f"{name}, inverse", backwards, images.take(order[np.argsort(places)], positions)
            )
        )
    return known


def _devkit_id(place: int, network_class: int) -> int:
    return facts.devkit_ids()[facts.synsets()[network_class]]


def _words(place: int, network_class: int) -> str:
    return facts.texts()[facts.synsets()[network_class]].lower()


def _digits(place: int, network_class: int) -> str:
    return str(place)


_SORT_KEYS: dict[str, Callable[[int, int], int | str]] = {
    "the devkit's ILSVRC2012_ID": _devkit_id,
    "class names, not WordNet ids": _words,
    "numbers as text: 0, 1, 10, 100": _digits,
}
"""What classes are sorted by where someone got it wrong:
keys by the place of a class in the set and in the network.
"""


def _without_twins(known: Sequence[Explanation]) -> list[Explanation]:
    different: list[Explanation] = []
    for explanation in known:
        if not any(np.array_equal(explanation.classes, earlier.classes) for earlier in different):
            different.append(explanation)
    return different


def evidence(probabilities: Probabilities, classes: Indices) -> NDArray[np.float64]:
    """The evidence of each image for its class:
    0 says no more than chance, at most 3, at least -1.3.
    """
    rows = np.arange(len(classes))
    chance = 1 / facts.CLASSES
    likelihood = np.where(classes == NONE, 0, probabilities[rows, classes]).astype(np.float64)
    return np.log10(((1 - _DOUBT) * likelihood + _DOUBT * chance) / chance)


@dataclass(frozen=True)
class Weighed:
    """An explanation with its evidence for each image."""

    explanation: Explanation
    by_image: NDArray[np.float64]
    penalty: float = 0.0

    @property
    def total(self) -> float:
        """The decimal logarithm of its odds against chance."""
        return float(self.by_image.sum()) - self.penalty


def weigh(probabilities: Probabilities, images: LabelledImages) -> list[Weighed]:
    """Every explanation with its evidence: first the labels as they are,
    then the others, the best first.
    """
    known = [Weighed(one, evidence(probabilities, one.classes)) for one in explanations(images)]
    stated, *others = known
    moved = [one for one in others if one.explanation.reason in (_ONE_MORE, _ONE_LESS)]
    for whole in moved:
        part = _moved_from_a_class_on(images, stated, whole)
        if part.total - max(stated.total, whole.total) >= ENOUGH:
            others.append(part)
    return [stated, *sorted(others, key=lambda one: -one.total)]


def _moved_from_a_class_on(images: LabelledImages, stated: Weighed, moved: Weighed) -> Weighed:
    """The best mixture of two explanations: the labels as they are up to one class, and moved from
    it on.

    The choice among so many classes has its price, the logarithm of their number, twice for the two
    directions.
    """
    count = len(images.order)
    places = images.positions.clip(0, count - 1)
    gains = np.bincount(places, moved.by_image - stated.by_image, count)
    start = (
        count - 1 - int(np.cumsum(gains[::-1]).argmax())
    )  # of equal ones the last: a class of the sample
    is_moved = images.positions >= start
    first = f"{start}, {class_name(int(images.order[start]))},"
    reason = (
        f"labels from {first} on are moved by one: is a class missing before it, or one too many?"
    )
    classes = np.where(is_moved, moved.explanation.classes, stated.explanation.classes)
    by_image = np.where(is_moved, moved.by_image, stated.by_image)
    name = f"{moved.explanation.name} from {start} on"
    return Weighed(Explanation(name, reason, classes), by_image, math.log10(2 * count))


def class_name(network_class: int) -> str:
    """WordNet id and first word: "n01440764 tench"."""
    if network_class == NONE:
        return "no class"
    wnid = facts.synsets()[network_class]
    return f"{wnid} {facts.texts()[wnid].partition(',')[0]}"


def alikeness(probabilities: Probabilities, positions: Indices) -> float:
    """The evidence that images with the same label are of one class, whichever that is.

    Each image's class is foretold by the others of its label, compared with all images. Labels with
    one image say nothing.
    """
    overall = probabilities.mean(axis=0)
    total = 0.0
    for position in np.unique(positions):
        same = probabilities[positions == position].astype(np.float64)
        if len(same) > 1:
            foretold = (same.sum(axis=0) - same) / (len(same) - 1)
            ratio = (same * foretold).sum(axis=1) / (same @ overall)
            total += float(np.log10((1 - _DOUBT) * ratio + _DOUBT).sum())
    return total
