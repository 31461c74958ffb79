"""claim: counts, boxes, odd images and published sizes of sound shards -> their ReasonedLevel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.verdict import ReasonedLevel, SplitReport
from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import Part
from imagenet_prep.ilsvrc2012.image_counts import at_least_text
from imagenet_prep.ilsvrc2012.settings import expected_by_class, source_of
from imagenet_prep.images.prepare import repaired_images
from imagenet_prep.model import ShardInfo
from imagenet_prep.storage.layout import split_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of


class Evidence:
    """The facts about the shards of some classes, or of all.

    Args:
        part: the classes.
        inventory: the shards.
        totals: of both splits, as found.
        findings: those of all shards together; none after a quick check.
    """

    def __init__(
        self, part: Part, inventory: Inventory, totals: Sequence[SplitReport], findings: SetFindings
    ) -> None:
        self.part, self.inventory, self.findings = part, inventory, findings
        self.totals = {total.split: total for total in totals}
        self.source = source_of(inventory.manifest, facts.TRAIN)
        self.expected_by_class = expected_by_class(inventory.manifest)

    @property
    def name(self) -> str:
        """The name of the set for messages."""
        return self.part.name if self.part.is_whole else f'"{self.part.name}"'

    @property
    def images(self) -> int:
        """The number of images in both splits."""
        return sum(total.records or 0 for total in self.totals.values())

    # what is missing ------------------------------------------------------------------------------

    def shortfalls(self) -> Iterator[str]:
        """Each number of images, classes and boxes that does not hold, as "3 of 5 train images"."""
        for total in self.totals.values():
            yield from self._shortfall(total)
        boxes = self.totals[facts.TRAIN].boxes or 0
        if self.part.is_whole and boxes not in (0, facts.BOXES):
            yield f"{boxes:,} of {facts.BOXES:,} boxes"

    def _shortfall(self, total: SplitReport) -> Iterator[str]:
        """The number of images of a split that does not hold; if it does, that of classes."""
        split, classes = total.split, len(self.part.labels)
        manifest = self.inventory.manifest
        recorded = manifest.totals.get(split) if manifest else None
        expected = recorded.expected if recorded else self.part.images(split, 0)
        differing = list(self._differing_counts()) if split == facts.TRAIN else []
        if total.records != expected or differing:
            at_least = at_least_text(split, self.part, self.expected_by_class)
            details = f" ({listed(differing)})" if differing else ""
            yield f"{total.records:,} of {at_least}{expected:,} {split} images{details}"
        elif total.classes != classes:
            yield f"{total.classes:,} of {classes:,} classes of {split}"

    def _differing_counts(self) -> Iterator[str]:
        """The classes with another number of train images than the devkit's."""
        images = self.source.get("images_by_class", {})
        for wnid, expected in self.expected_by_class.items():
            if images.get(wnid, 0) != expected:
                yield f"{wnid} {images.get(wnid, 0):,} of {expected:,}"

    def unknown_counts(self) -> str:
        """The number that nothing tells for some classes: of images, or of boxes;
        "" if all are known.
        """
        if self.part.is_whole:
            return ""
        if not self.expected_by_class:
            wnids = list(self.part.labels)
            classes = wnids[0] if len(wnids) == 1 else "each class"
            return f"How many images {classes} should have is not known without the devkit."
        boxes = self.source.get("boxes", {}).get("count", 0)
        if boxes not in (0, facts.BOXES):
            source = f"Their boxes are from a file of {boxes:,} boxes"
            return f"{source}, and ILSVRC2012 has {facts.BOXES:,}."
        return ""

    # other images ---------------------------------------------------------------------------------

    def other_images(self) -> str:
        """The evidence that the images are not the published ones; "" if there is none."""
        repairs = repairs_of(self.inventory.infos.values())
        repaired = repaired_images(repairs).keys()
        odd_images = self._odd_images()
        if self.inventory.manifest is not None and repaired != odd_images:
            return other_odd_images(repaired, odd_images)
        comparable = self.comparable()
        sizes = self.inventory.sizes
        differing = [name for name in comparable if sizes[name] != facts.PUBLISHED_SIZES[name]]
        if differing:
            shards = f"{len(differing)} of {number_of(len(comparable), 'shard')}"
            verb = "has another size" if len(differing) == 1 else "have other sizes"
            return f"{_NOT_PUBLISHED} {shards} whose size is published {verb}."
        return ""

    def _odd_images(self) -> set[str]:
        """The published PNG and CMYK images of these classes."""
        published = frozenset().union(*facts.ODD_IMAGES.values())
        return {name for name in published if name[:9] in self.part.labels}

    def comparable(self) -> list[str]:
        """The shards whose sizes can be compared with those published, which have the settings of
        2016.

        Another library repairs images to other bytes, and a train shard with fewer boxes is
        smaller.
        """
        if not self._is_as_in_2016():
            return []
        has_usual_boxes = {
            facts.TRAIN: self.totals[facts.TRAIN].boxes == facts.BOXES,
            facts.VALIDATION: not self.totals[facts.VALIDATION].boxes,
        }
        repaired = self.repaired_shards()
        published = [name for name in self.inventory.present if name in facts.PUBLISHED_SIZES]
        untouched = [name for name in published if name not in repaired]
        return [name for name in untouched if has_usual_boxes[split_of(name)]]

    def repaired_shards(self) -> set[str]:
        """The shards with repaired images."""
        return {name for name, info in self.inventory.infos.items() if info.repairs}

    def _is_as_in_2016(self) -> bool:
        manifest = self.inventory.manifest
        if manifest is None:
            findings = self.findings
            form = (findings.flavour, findings.differences, findings.order)
            return form == ("Inception", (), "canonical")
        usual = {"seed": order.SEED, "shuffle": True, "compression": "none", "reencode": None}
        settings = {name: manifest.settings.get(name) for name in usual}
        return settings == usual and not self.part.recorded


def claim(evidence: Evidence, *, is_part: bool) -> ReasonedLevel:
    """The level of shards if they are sound; ``is_part``:
    without a manifest, they are a part of ILSVRC2012.
    """
    name = evidence.name
    inventory = evidence.inventory
    if inventory.manifest is None and is_part:
        return _unrecorded_part(name, inventory)
    if any(total.records is None for total in evidence.totals.values()):
        return ReasonedLevel("foreign", f"nothing records how much of {name} these shards hold.")
    shortfalls = ", ".join(evidence.shortfalls())
    if shortfalls:
        return ReasonedLevel("incomplete", f"the shards of {name} hold {shortfalls}.")
    doubts = [evidence.unknown_counts(), evidence.other_images()]
    doubt_text = " ".join(doubt for doubt in doubts if doubt)
    if doubt_text:
        return ReasonedLevel(
            "as listed", f"all {evidence.images:,} listed images are in. {doubt_text}"
        )
    if evidence.part.is_whole and _has_published_sizes(evidence):
        return ReasonedLevel(
            "official", f"the shards of {name} are whole and right, and have the published sizes."
        )
    return ReasonedLevel("complete", f"the shards of {name} are whole and right.")


def _unrecorded_part(name: str, inventory: Inventory) -> ReasonedLevel:
    """The level of some shards without a manifest."""
    absent_splits = [split for split in facts.SPLITS if not inventory.of(split)]
    absent = "".join(f" There is no {split} shard." for split in absent_splits)
    return ReasonedLevel(
        "part",
        f"some records of {name}, intact. How many there should be is not recorded.{absent}",
    )


def _has_published_sizes(evidence: Evidence) -> bool:
    """Whether all shards without repaired images are there, and can be compared."""
    unrepaired = facts.PUBLISHED_SIZES.keys() - evidence.repaired_shards()
    return unrepaired == set(evidence.comparable())


_NOT_PUBLISHED = "They are not the published images:"


def other_odd_images(odd_images: Set[str], published: Set[str]) -> str:
    """The evidence that PNG and CMYK images, by their names, are not the published ones."""
    others = len(odd_images - published)
    if not published:
        images = number_of(others, "PNG or CMYK image is", "PNG or CMYK images are")
        return f"{_NOT_PUBLISHED} {images} among them, and none is published."
    images = number_of(len(published), "PNG and CMYK image is", "PNG and CMYK images are")
    evidence = f"{_NOT_PUBLISHED} {len(odd_images & published)} of {images} among them"
    if others:
        evidence += f", and {number_of(others, 'other')}"
    return f"{evidence}."


# copies that were encoded again -------------------------------------------------------------------


MAY_BE_ENCODED_AGAIN = "some images are not the published ones; they may have been encoded again"
"""The fault of images that are more often PNG or CMYK than those of ILSVRC2012."""


def refuse_encoded_again(repairs: Iterable[str], raw_dir: AnyPath) -> None:
    """Raise InputError if ``repairs``, those of ShardInfo,
    show that somebody encoded the images again.
    """
    if counts := find_encoded_again(repairs):
        raise InputError(
            f"{raw_dir}: {MAY_BE_ENCODED_AGAIN}",
            counts,
            remedy_encoded_again(raw_dir),
        )


def remedy_encoded_again(raw_dir: AnyPath) -> str:
    """The remedy for images that somebody encoded again."""
    return Hint(
        "get the published images; or make shards of these as a data set of your own: ",
        command("init", raw_dir),
    )


def find_encoded_again(repairs: Iterable[str]) -> str:
    """The counts of PNGs and CMYK JPEGs if ILSVRC2012 has fewer: somebody encoded images again;
    otherwise "".
    """
    counts = Counter(repaired_images(repairs).values())
    surpluses = []
    for image_format, count in sorted(counts.items()):
        published = len(facts.ODD_IMAGES.get(image_format, ()))
        if count > published:
            images = number_of(count, f"{image_format.upper()} image")
            surpluses.append(f"{images}, {facts.NAME} has {published}")
    return "; ".join(surpluses)


def repairs_of(infos: Iterable[ShardInfo]) -> Iterator[str]:
    """The repairs in all of these shards."""
    return (repair for info in infos for repair in info.repairs)
