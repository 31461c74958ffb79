"""Prove the labels of an ImageNet set with a published network: ``make prove
DATA_DIR=/data/imagenet``.

    python scripts/prove_labels.py DATA_DIR [--split validation] [--images 2000] [--first-label 1]

EfficientNet-Lite0, whose weights come as a Python package, classifies a sample spread over all
shards. Exit status 0: labels and colors are right; 3: they are wrong, the last line says how; 4:
the images are too few, can't be read, or are classified worse than ILSVRC2012's; 2: the set has other classes than ILSVRC2012.
docs/howto/prove-labels.md explains the output.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from label_hypotheses import (
    ENOUGH,
    NONE,
    Indices,
    LabelledImages,
    Probabilities,
    Weighed,
    alikeness,
    class_name,
    evidence,
    weigh,
)
from numpy.typing import NDArray
from PIL import Image
from published_network import PUBLISHED_TOP1, Network, middle
from tqdm import tqdm

import imagenet_prep
from imagenet_prep.errors import DataProblemsError, IncompleteError, PrepError, UsageError
from imagenet_prep.escaping import escaped
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.reading.record import Record
    from imagenet_prep.reading.shard_set import ShardSet

INTERRUPTED = 130
"""The exit status after Ctrl-C, as of every command of imagenet-prep."""

# how far below the published accuracy all 50,000 images may be: other resizing, other JPEG decoders
_ALLOWED = 0.05
# of a part of the classes, which may be hard ones
_HALF = 0.5
_SMALLEST = 200  # pixels of the shorter side: all but a few of the validation images have more
_BATCH = 32
_SHOWN_CLASSES = 10
_SHOWN_EXPLANATIONS = 4


# the set ------------------------------------------------------------------------------------------


def open_records(data_dir: str, split: str, first_label: int | None) -> ShardSet:
    """The records of a set; ``first_label`` is that of a set without a manifest, None: as the set
    says.

    Raises:
        PrepError: there are none, or the set has a manifest, which says where its labels start.
    """
    records = imagenet_prep.open(data_dir, split)
    if first_label is None:
        return records
    if records.class_names:
        what = f"--first-label {first_label}: the manifest of {data_dir} says that labels start at"
        raise UsageError(
            f"{what} {records.first_label}",
            "expected a set without a manifest",
            "leave --first-label out",
        )
    records.first_label = first_label
    return records


def class_order(names: Mapping[int, str], first_label: int) -> Indices:
    """The network's class of each class of a set, in the order of labels; NONE for a number that is
    no label.

    Args:
        names: the names of the classes by label: WordNet ids, or words such as "tench". A set
            without names, or with a thousand numbers, is taken to have the 1000 classes in official
            order.
        first_label: the label that counts as class 0.

    Raises:
        UsageError: a name is none of the 1000 classes.
    """
    official = np.arange(facts.CLASSES)
    is_numbered = len(names) >= facts.CLASSES and all(name.isdecimal() for name in names.values())
    if not names or is_numbered:
        return official
    known = _classes_by_name()
    strangers = [name for name in names.values() if _plain(name) not in known]
    if strangers:
        what = (
            f"{len(strangers):,} of {len(names):,} classes are none of ILSVRC2012's 1000: "
            f"{escaped(strangers[0])}"
        )
        expected = "expected WordNet ids such as n01440764, or words such as tench"
        raise UsageError(
            what, expected, "the network knows no other classes, so it can't prove these labels"
        )
    classes = {label - first_label: known[_plain(name)] for label, name in names.items()}
    if all(position == network_class for position, network_class in classes.items()):
        return official  # a part of the classes, under their official labels
    order = np.full(max(classes) + 1, NONE)
    order[list(classes)] = list(classes.values())
    return order


def _classes_by_name() -> dict[str, int]:
    """The network's class by WordNet id, by all of its words, and by each word,
    if no other class has the same.
    """
    texts = [facts.texts()[wnid] for wnid in facts.synsets()]
    words = [(word, number) for number, text in enumerate(texts) for word in text.split(", ")]
    whole = [(text, number) for number, text in enumerate(texts)]
    return (
        _unique(words)
        | _unique(whole)
        | {wnid: label - 1 for wnid, label in facts.labels().items()}
    )


def _unique(named: Iterable[tuple[str, int]]) -> dict[str, int]:
    classes: dict[str, set[int]] = {}
    for name, network_class in named:
        classes.setdefault(_plain(name), set()).add(network_class)
    return {name: min(owners) for name, owners in classes.items() if len(owners) == 1}


def _plain(name: str) -> str:
    return name.lower().replace("_", " ")


@dataclass(frozen=True)
class Described:
    """What a record says of its image: its label from 0,
    the network's class by its WordNet id, its shorter side.
    """

    position: int
    by_wnid: int
    filename: str
    shorter_side: int

    @classmethod
    def read(cls, record: Record, image: Image.Image, first_label: int) -> Described:
        """Counts the label itself: ``class_index`` refuses labels below the first,
        which are to be explained.
        """
        assert record.label is not None
        by_wnid = facts.labels().get(record.wnid or "", 0) - 1
        return cls(record.label - first_label, by_wnid, record.filename, min(image.size))

    @property
    def is_official(self) -> bool:
        """Whether it is one of ILSVRC2012's validation images, and not a small copy of it."""
        return facts.validation_number(self.filename) is not None and self.shorter_side >= _SMALLEST


@dataclass(frozen=True)
class Sample:
    """Images of a set of ``total``, classified: in RGB, and with red and blue ``swapped``."""

    total: int
    order: Indices
    described: list[Described]
    probabilities: Probabilities
    swapped: Probabilities

    @property
    def count(self) -> int:
        """The number of images."""
        return len(self.described)

    @property
    def has_every_class(self) -> bool:
        """Whether the set has all classes of ILSVRC2012, and not a part of them."""
        return len(self.order) == facts.CLASSES

    @property
    def labelled(self) -> LabelledImages:
        """What the set says of them, as columns."""
        positions = np.array([image.position for image in self.described])
        by_wnid = np.array([image.by_wnid for image in self.described])
        return LabelledImages(self.order, positions, by_wnid)


def classify_sample(records: ShardSet, network: Network, count: int) -> Sample:
    """Classify ``count`` images, evenly spread over a set; 0 for all.
    Images without a label are left out.
    """
    order = class_order(records.class_names, records.first_label)
    labelled = (record for record in _spread(records, count) if record.label is not None)
    described: list[Described] = []
    probabilities: list[Probabilities] = []
    swapped: list[Probabilities] = []
    while batch := list(itertools.islice(labelled, _BATCH)):
        images = [Image.fromarray(record.array()) for record in batch]
        pixels = np.stack([middle(image) for image in images])
        probabilities.append(network.classify(pixels))
        swapped.append(network.classify(np.ascontiguousarray(pixels[..., ::-1])))
        described += [
            Described.read(*pair, records.first_label) for pair in zip(batch, images, strict=True)
        ]
    if not described:
        raise IncompleteError(f"{records!r} has no image with a label", "expected labelled images")
    _refuse_other_numbers(described, len(order))
    return Sample(
        len(records), order, described, np.concatenate(probabilities), np.concatenate(swapped)
    )


def _spread(records: ShardSet, count: int) -> Iterator[Record]:
    """The records at even distances; a compressed shard is read from its beginning."""
    count = min(count or len(records), len(records))
    numbers = [(2 * place + 1) * len(records) // (2 * count) for place in range(count)]
    progress: Any = tqdm(numbers, unit="image", disable=None)
    if records.compression == "none":
        yield from (records[number] for number in progress)
        return
    everything = enumerate(records)
    for wanted in progress:
        yield next(record for number, record in everything if number == wanted)


def _refuse_other_numbers(described: Sequence[Described], classes: int) -> None:
    """Labels far from the classes are of another data set;
    one beyond them is a mistake to explain.
    """
    positions = [image.position for image in described]
    if min(positions) < -1 or max(positions) > classes:
        what = f"labels, counted from 0, are {min(positions):,} to {max(positions):,}"
        raise UsageError(
            what, f"expected 0 to {classes - 1:,}: ILSVRC2012's classes, or a part of them"
        )


# the verdict --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelVerdict:
    """What is known of a set: its explanations, under the colors that fit better,
    the verdict and its exit status.
    """

    weighed: list[Weighed]
    probabilities: Probabilities
    colors: str
    sentence: str
    status: int


def judge(sample: Sample) -> LabelVerdict:
    """Choose between the explanations of labels and colors."""
    in_rgb = weigh(sample.probabilities, sample.labelled)
    in_bgr = weigh(sample.swapped, sample.labelled)
    totals = [max(one.total for one in weighed) for weighed in (in_rgb, in_bgr)]
    lead = (
        totals[0] - totals[1] if max(totals) >= ENOUGH else 0.0
    )  # labels that fit nothing say nothing of colors
    is_swapped = lead <= -ENOUGH
    probabilities = sample.swapped if is_swapped else sample.probabilities
    weighed = in_bgr if is_swapped else in_rgb
    faults = ["images are decoded wrong: red and blue are swapped (BGR)"] if is_swapped else []
    faults += _label_faults(weighed, probabilities, sample)
    doubt = _label_doubt(weighed, probabilities, sample)
    if faults:
        sentence, status = f"wrong: {'; '.join(faults)}", DataProblemsError.exit_code
    elif doubt:
        sentence, status = f"undecided: {doubt}", IncompleteError.exit_code
    else:
        sentence, status = "right: the labels fit the images", 0
    return LabelVerdict(weighed, probabilities, _colors(lead, sample.count), sentence, status)


def _colors(lead: float, count: int) -> str:
    if abs(lead) < ENOUGH:
        return (
            f"undecided: about {_needed(abs(lead), count):,} images are needed to tell RGB from BGR"
        )
    return f"{'RGB' if lead > 0 else 'BGR'}, odds {_odds(abs(lead))}"


def _label_faults(
    weighed: Sequence[Weighed], probabilities: Probabilities, sample: Sample
) -> list[str]:
    """What is wrong with the labels beyond doubt."""
    stated, *others = weighed
    best = others[0]
    if best.total >= max(stated.total, 0) + ENOUGH:
        return [best.explanation.reason]
    if stated.total <= -ENOUGH:
        is_alike = alikeness(probabilities, sample.labelled.positions) >= ENOUGH
        return [_UNKNOWN_ORDER if is_alike else _NOTHING]
    return _low_accuracy(top(probabilities, stated.explanation.classes, 1), sample)


_UNKNOWN_ORDER = (
    "images with the same label look alike, but labels count the classes in an unknown order"
)
_NOTHING = (
    "labels say nothing about the images: they belong to others, or the images are decoded wrong"
)


def _low_accuracy(top1: NDArray[np.bool_], sample: Sample) -> list[str]:
    """Whether official validation images of all classes are classified worse than published."""
    is_official = all(image.is_official for image in sample.described)
    if not is_official or not sample.has_every_class or not _is_far_below(top1, sample):
        return []
    return [f"{_accuracy_beside_published(top1)}: a part of the labels or images is wrong"]


def _is_far_below(top1: NDArray[np.bool_], sample: Sample) -> bool:
    """Whether top-1 is below what right labels allow, by more than three standard errors."""
    allowed = PUBLISHED_TOP1 - _ALLOWED if sample.has_every_class else _HALF
    error = math.sqrt(allowed * (1 - allowed) / len(top1))
    return float(top1.mean()) < allowed - 3 * error


def _accuracy_beside_published(top1: NDArray[np.bool_]) -> str:
    return f"top-1 is {top1.mean():.1%}, far below {PUBLISHED_TOP1:.1%}"


def _label_doubt(weighed: Sequence[Weighed], probabilities: Probabilities, sample: Sample) -> str:
    """Why the images can't decide; "" if they do."""
    stated, *others = weighed
    best_other = max(0.0, others[0].total)
    lead = stated.total - best_other
    if lead < ENOUGH:
        needed = _needed(abs(lead), sample.count)
        return (
            f"{number_of(sample.count, 'image')} can't say whether the labels are right: "
            f"about {needed:,} are needed"
        )
    top1 = top(probabilities, stated.explanation.classes, 1)
    if _is_far_below(top1, sample):
        return (
            f"{_accuracy_beside_published(top1)}: a part of the labels is wrong, "
            "or the images are small, drawn or unlike those of ILSVRC2012"
        )
    return ""


def _needed(lead: float, count: int) -> int:
    """The images that would decide at the same lead per image;
    at most a hundred times as many, at least one more.
    """
    per_image = max(lead / count, ENOUGH / (100 * count))
    return max(count + 1, math.ceil(ENOUGH / per_image))


def top(probabilities: Probabilities, classes: Indices, count: int) -> NDArray[np.bool_]:
    """Whether each image's class is among the ``count`` most likely."""
    most_likely = np.argsort(-probabilities, axis=1)[:, :count]
    is_among: NDArray[np.bool_] = (most_likely == classes[:, None]).any(axis=1)
    return is_among


# what is printed ----------------------------------------------------------------------------------


def report(sample: Sample, verdict: LabelVerdict) -> list[str]:
    """The lines to print, the verdict last."""
    stated = verdict.weighed[0].explanation.classes
    top1, top5 = (top(verdict.probabilities, stated, count).mean() for count in (1, 5))
    lines = [
        f"images  {sample.count:,} of {sample.total:,}",
        f"top-1   {top1:.1%} (published: {PUBLISHED_TOP1:.1%} of ILSVRC2012's validation images)",
        f"top-5   {top5:.1%}",
        f"colors  {verdict.colors}",
        "",
        f"{'labels':<42} odds against chance",
    ]
    shown = verdict.weighed[: _SHOWN_EXPLANATIONS + 1]
    lines += [f"  {one.explanation.name:<40} {_odds(one.total)}" for one in shown]
    lines += _standing_out(verdict, sample.labelled.positions)
    return [*lines, "", verdict.sentence]


def _odds(decimals: float) -> str:
    if abs(decimals) < ENOUGH:
        return f"{10**decimals:,.3g} to 1"
    return f"10^{decimals:,.0f} to 1"


def _standing_out(verdict: LabelVerdict, positions: Indices) -> list[str]:
    """A line for each class none of whose images, at least two, is among the first five:
    the worst ones.
    """
    stated = verdict.weighed[0].explanation.classes
    is_seen = top(verdict.probabilities, stated, 5)
    by_image = evidence(verdict.probabilities, stated)
    misfits: list[tuple[float, int]] = []
    for position in np.unique(positions):
        mine = positions == position
        if mine.sum() > 1 and not is_seen[mine].any():
            misfits.append((float(by_image[mine].sum()), int(position)))
    lines = (
        ["", "classes that stand out: none of their images is among the first five"]
        if misfits
        else []
    )
    for _, position in sorted(misfits)[:_SHOWN_CLASSES]:
        mine = positions == position
        seen = class_name(int(verdict.probabilities[mine].sum(axis=0).argmax()))
        named = class_name(int(stated[mine][0]))
        lines.append(f"  class {position}, {named}: {mine.sum():,} images, most like {seen}")
    if len(misfits) > _SHOWN_CLASSES:
        lines.append(f"  and {len(misfits) - _SHOWN_CLASSES:,} more")
    return lines


def main() -> None:
    """Classify a sample, print the report, exit with the status of the verdict."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data_dir", help="the folder of the shards")
    parser.add_argument(
        "--split", default=facts.VALIDATION, help="the split to look at (default: validation)"
    )
    parser.add_argument(
        "--images", type=int, default=2000, help="size of the sample; 0: all images (default: 2000)"
    )
    help_of_first = "the label of the first class, for a set without a manifest (default: 1)"
    parser.add_argument("--first-label", type=int, help=help_of_first)
    options = parser.parse_args()
    if options.images < 0:
        parser.error(f"--images {options.images}: expected 0 or more")
    try:
        records = open_records(options.data_dir, options.split, options.first_label)
        sample = classify_sample(records, Network(), options.images)
    except PrepError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: no verdict", file=sys.stderr)
        sys.exit(INTERRUPTED)
    verdict = judge(sample)
    print(*report(sample, verdict), sep="\n")
    sys.exit(verdict.status)


if __name__ == "__main__":
    main()
