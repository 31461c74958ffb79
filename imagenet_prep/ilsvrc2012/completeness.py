"""claim: counts, boxes, odd images and published sizes of sound shards -> their ReasonedLevel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.verdict import ReasonedLevel, SplitReport
from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import Part, expected_by_class, source_of
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
        manifest, labels = self.inventory.manifest, self.part.labels
        for split, total in self.totals.items():
            recorded = manifest.totals.get(split) if manifest else None
            expected = recorded.expected if recorded else self.part.images(split, 0)
            is_least = split == facts.TRAIN and not (self.part.is_whole or self.expected_by_class)
            classes = list(self._other_counts()) if split == facts.TRAIN else []
            if total.records != expected or classes:
                details = f" ({listed(classes)})" if classes else ""
                yield (
                    f"{total.records:,} of {'at least ' * is_least}{expected:,} {split} "
                    f"images{details}"
                )
            elif total.classes != len(labels):
                yield f"{total.classes:,} of {len(labels):,} classes of {split}"
        boxes = self.totals[facts.TRAIN].boxes or 0
        if self.part.is_whole and boxes not in (0, facts.BOXES):
            yield f"{boxes:,} of {facts.BOXES:,} boxes"

    def _other_counts(self) -> Iterator[str]:
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
            whose = listed(self.part.labels) if len(self.part.labels) == 1 else "each class"
            return f"How many {whose} should have is not known without the devkit."
        boxes = self.source.get("boxes", {}).get("count", 0)
        if boxes not in (0, facts.BOXES):
            return (
                f"Their boxes are from a file of {boxes:,} boxes, "
                f"and ILSVRC2012 has {facts.BOXES:,}."
            )
        return ""

    # other images ---------------------------------------------------------------------------------

    def other_images(self) -> str:
        """The evidence that the images are not the published ones; "" if there is none."""
        not_published = "They are not the published images:"
        repaired = repaired_images(repairs_of(self.inventory.infos.values())).keys()
        odd = {
            name
            for names in facts.ODD_IMAGES.values()
            for name in names
            if name[:9] in self.part.labels
        }
        if self.inventory.manifest is not None and repaired != odd:
            there = f"{len(repaired & odd)} of {number_of(len(odd), 'PNG and CMYK image')}"
            return f"{not_published} {there} are among them, and {len(repaired - odd):,} others."
        comparable = self.comparable()
        other = [
            name for name in comparable if self.inventory.sizes[name] != facts.PUBLISHED_SIZES[name]
        ]
        if other:
            return (
                f"{not_published} {len(other)} of {len(comparable)} comparable shards have "
                "other sizes."
            )
        return ""

    def comparable(self) -> list[str]:
        """The shards whose sizes can be compared with those published, which have the settings of
        2016.

        Another library repairs images to other bytes, and a train shard with fewer boxes is
        smaller.
        """
        if not self._is_as_in_2016():
            return []
        boxes = {split: total.boxes for split, total in self.totals.items()}
        usual = {
            facts.TRAIN: boxes[facts.TRAIN] == facts.BOXES,
            facts.VALIDATION: not boxes[facts.VALIDATION],
        }
        known = [name for name in self.inventory.present if name in facts.PUBLISHED_SIZES]
        return [
            name for name in known if usual[split_of(name)] and name not in self.repaired_shards()
        ]

    def repaired_shards(self) -> set[str]:
        """The shards with repaired images."""
        return {name for name, info in self.inventory.infos.items() if info.repairs}

    def _is_as_in_2016(self) -> bool:
        manifest = self.inventory.manifest
        if manifest is None:
            findings = self.findings
            return (findings.flavour, findings.differences, findings.order) == (
                "Inception",
                (),
                "canonical",
            )
        settings = {
            name: manifest.settings.get(name)
            for name in ("seed", "shuffle", "compression", "reencode")
        }
        usual = {"seed": order.SEED, "shuffle": True, "compression": "none", "reencode": None}
        return settings == usual and not self.part.recorded


def claim(evidence: Evidence, *, is_part: bool) -> ReasonedLevel:
    """The level of shards if they are sound; ``is_part``:
    without a manifest, they are a part of ILSVRC2012.
    """
    name, inventory = evidence.name, evidence.inventory
    if inventory.manifest is None and is_part:
        absent = "".join(
            f" There is no {split} shard." for split in facts.SPLITS if not inventory.of(split)
        )
        return ReasonedLevel(
            "part",
            f"some records of {name}, intact. How many there should be is not recorded.{absent}",
        )
    if any(total.records is None for total in evidence.totals.values()):
        return ReasonedLevel("foreign", f"nothing records how much of {name} these shards hold.")
    if shortfalls := list(evidence.shortfalls()):
        return ReasonedLevel("incomplete", f"the shards of {name} hold {', '.join(shortfalls)}.")
    doubts = [*filter(None, (evidence.unknown_counts(), evidence.other_images()))]
    if doubts:
        return ReasonedLevel(
            "as listed", f"all {evidence.images:,} listed images are in. {' '.join(doubts)}"
        )
    if evidence.part.is_whole and facts.PUBLISHED_SIZES.keys() - evidence.repaired_shards() == {
        *evidence.comparable()
    }:
        return ReasonedLevel(
            "official", f"the shards of {name} are whole and right, and have the published sizes."
        )
    return ReasonedLevel("complete", f"the shards of {name} are whole and right.")


# copies that were encoded again -------------------------------------------------------------------


def refuse_encoded_again(repairs: Iterable[str], raw_dir: AnyPath) -> None:
    """Raise InputError if ``repairs``, those of ShardInfo,
    show that somebody encoded the images again.
    """
    if counts := find_encoded_again(repairs):
        raise InputError(
            f"the images in {raw_dir} are not those of {facts.NAME}: somebody encoded them again",
            counts,
            remedy_encoded_again(raw_dir),
        )


def remedy_encoded_again(raw_dir: AnyPath) -> str:
    """The remedy for images that somebody encoded again."""
    return (
        "get the published images; or make shards of these as a data set of your own: "
        f"{command('init', raw_dir)}"
    )


def find_encoded_again(repairs: Iterable[str]) -> str:
    """The counts of PNGs and CMYK JPEGs if ILSVRC2012 has fewer: somebody encoded images again;
    otherwise "".
    """
    kinds = Counter(repaired_images(repairs).values())
    most = {kind: len(names) for kind, names in facts.ODD_IMAGES.items()}
    too_many = [kind for kind in sorted(kinds) if kinds[kind] > most.get(kind, 0)]
    words = (
        f"{number_of(kinds[kind], f'{kind.upper()} image')}, {facts.NAME} has {most.get(kind, 0)}"
        for kind in too_many
    )
    return "; ".join(words)


def repairs_of(infos: Iterable[ShardInfo]) -> Iterator[str]:
    """The repairs in all of these shards."""
    return (repair for info in infos for repair in info.repairs)
