"""Facts: everything that the page is made from -> its words and tables.
The template only places them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from msgspec import Struct

from imagenet_prep.checks.checked_dataset import CheckedDataset, Published
from imagenet_prep.checks.verdict import RIGHT, SplitReport, Verdict
from imagenet_prep.hints import changed
from imagenet_prep.model import Problem
from imagenet_prep.reporting.census import UNREAD, Census, FeatureCensus
from imagenet_prep.reporting.charts import Chart
from imagenet_prep.reporting.marks_file import MarkedImages
from imagenet_prep.reporting.samples import Colours, Sample
from imagenet_prep.state.manifest import Manifest, SplitTotals, features_by_column
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import number_of, size_text
from imagenet_prep.version import describe_version

SHOWN_PROBLEMS = 200

SHOWN_NAMES = 8
"""Odd images per kind, and damaged shards, that are shown or named; the rest are counted."""

_DEPTHS = {
    "quick": "Only names, sizes and indexes were checked.",
    "full": "Every byte was read, and every record and every image's header were checked.",
    "decode": "Every byte was read, every record was checked, and every image was decoded.",
}
_DEPTHS_BY_RECIPE = {
    **_DEPTHS,
    "full": "Every byte was read, and every record was compared with the recipe.",
    "decode": (
        "Every byte was read, every record was compared with the recipe, "
        "and every image was decoded."
    ),
}


class Subject(Struct, frozen=True):
    """The data set.

    Args:
        name: of the data set.
        splits: the prefixes of shard names, in order.
        published: the facts of each split of the whole set; None for your own set.
        thing: the word for a record.
        has_classes: the labels in the records are those of its classes.
        has_boxes: records may have boxes.
        features: the features promised for every record, by name.
    """

    name: str
    splits: tuple[str, ...]
    published: Mapping[str, Published] | None = None
    thing: Literal["image", "record"] = "image"
    has_classes: bool = True
    has_boxes: bool = True
    features: Mapping[str, Mapping[str, Any]] = {}

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own set: no facts about it are published."""
        return self.published is None

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each split, by name."""
        return {split: number for number, split in enumerate(self.splits)}

    @classmethod
    def describe(
        cls, dataset: CheckedDataset, manifest: Manifest | None, census: Census
    ) -> Subject:
        """The subject of a known data set, from its manifest and its census."""
        if dataset.published is not None or manifest is None:
            return cls(dataset.name, dataset.splits, dataset.published)
        has_labels = "label" in features_by_column(manifest.settings)
        features = manifest.dataset.features or _found_features(census)
        return cls(
            dataset.name,
            dataset.splits,
            thing="image" if census.has_images else "record",
            has_classes=has_labels and bool(manifest.totals),
            has_boxes=bool(census.rows["boxes"].any()),
            features=features,
        )


class Facts(Struct, frozen=True):
    """Everything that the page is made from.

    ``name`` is that of the folder, or of the only file; ``paths`` are private locations with their
    names on the page. ``samples`` are the images to show first, ``more`` those that a filter can
    show, ``pictures`` all images by row. ``copies`` and ``near`` are rows of images that are equal
    or look alike; ``near`` is None if nobody asked. ``annotations`` are annotate's counts by split.
    ``marked`` are the images that the user flagged, None if the user gave no file of them.
    """

    name: str
    is_file: bool
    paths: Mapping[str, str]
    subject: Subject
    verdict: Verdict
    manifest: Manifest | None
    census: Census
    charts: Sequence[Chart]
    samples: Sequence[Sample]
    more: Sequence[Sample]
    pictures: Mapping[int, Sample]
    colours: Colours
    copies: Sequence[Sequence[int]]
    near: Sequence[Sequence[int]] | None
    annotations: Mapping[str, Mapping[str, int]]
    marked: MarkedImages | None = None

    @property
    def title(self) -> str:
        """The title of the page: the data set, or the folder for ILSVRC2012, or the file."""
        if self.subject.is_own and not self.is_file:
            return self.subject.name
        return self.name

    @property
    def is_foreign(self) -> bool:
        """Whether it is one file, and of another maker."""
        return self.is_file and not self.verdict.has_manifest

    @property
    def splits(self) -> dict[str, int]:
        """The splits with any findings, in order, each with its number."""
        shards = (*self.census.shards, *self.census.faults)
        counted = {split_of(name) or name for name in shards}
        numbers = self.subject.numbers
        return {split: number for split, number in numbers.items() if split in counted}

    def without_paths(self, text: str) -> str:
        """A text without the folders in front of file names: the location of a set is private."""
        return changed(text, self._without_paths)

    def _without_paths(self, text: str) -> str:
        for path, name in self.paths.items():
            text = text.replace(path, name)
        return text


def _found_features(census: Census) -> dict[str, dict[str, object]]:
    """The features of records that nothing promises."""
    count = len(census.rows) - len(census.marked(UNREAD))
    features: dict[str, dict[str, object]] = {}
    for name, counts in census.features.items():
        features[name] = {"kind": counts.kind, "optional": counts.records < count}
    return features


# the verdict --------------------------------------------------------------------------------------


def summary(facts: Facts) -> str:
    """The size of the set, in a line."""
    record_count = shard_count = byte_count = 0
    for total in facts.verdict.totals:
        record_count += total.records or 0
        shard_count += total.shards
        byte_count += total.bytes
    records = number_of(record_count, facts.subject.thing)
    shards = number_of(shard_count, "shard")
    size = size_text(byte_count)
    return f"{records} in {shards}, {size}"


def banner(facts: Facts) -> dict[str, Any]:
    """The verdict, and the notes; ``kind`` is good, part or bad."""
    verdict = facts.verdict
    title = verdict.level.capitalize()
    problem_count = len(verdict.shown_problems)
    if problem_count:
        kind = "bad"
        title += f": {number_of(problem_count, 'problem')} found"
        text = "These shards have problems, listed below with their remedies."
    else:
        kind = "good" if verdict.level in RIGHT else "part"
        text = f"{verdict.reason[:1].upper()}{verdict.reason[1:]}"
    has_recipe = facts.subject.is_own and not facts.is_foreign
    depths = _DEPTHS_BY_RECIPE if has_recipe else _DEPTHS
    notes_of_verdict = map(facts.without_paths, verdict.notes)
    notes = [depths[verdict.depth], *notes_of_verdict, *_gaps(facts)]
    if verdict.remarks:
        text += f" {verdict.remarks[0].upper()}{verdict.remarks[1:]}."
    return {"kind": kind, "title": title, "text": text, "notes": notes}


def _gaps(facts: Facts) -> list[str]:
    """The records and shards that the numbers of the page leave out."""
    gaps = []
    for name, reason in sorted(facts.census.faults.items()):
        gaps.append(f"{name} could not be read to its end: {facts.without_paths(reason)}")
    more_shards = len(gaps) - SHOWN_NAMES
    if more_shards > 0:
        gaps[SHOWN_NAMES:] = [f"the unread rest of {number_of(more_shards, 'more shard')}"]
    unread = len(facts.census.marked(UNREAD))
    if unread:
        records = number_of(unread, "record that is", "records that are")
        gaps.append(f"{records} not a tf.train.Example")
    return [f"Not counted below: {gap}" for gap in gaps]


Line = tuple[str, int | str | None, int | None, int | None]
"""A line of the totals: name, number found, expected, and in the whole set; None if unknown."""


def totals(facts: Facts) -> list[tuple[str, list[Line]]]:
    """The totals of each split, in order, compared with the manifest if there is one."""
    total_of = {total.split: total for total in facts.verdict.totals}
    lines_by_split: list[tuple[str, list[Line]]] = []
    for split in facts.subject.splits:
        if split in total_of:
            lines = _lines(total_of[split], facts)
            lines_by_split.append((split, lines))
    return lines_by_split


def _lines(total: SplitReport, facts: Facts) -> list[Line]:
    """The lines of one split; your own set has lines of classes and boxes
    only if records hold some.
    """
    subject, manifest = facts.subject, facts.manifest
    published = (subject.published or {}).get(total.split)
    recorded = manifest.totals.get(total.split) if manifest else None
    expected_images = None if facts.is_foreign else total.expected
    expected_shards = recorded.shards if recorded else None
    return [
        (f"{subject.thing}s", total.records, expected_images, published and published.images),
        *_class_line(total, facts, published, recorded),
        *_box_line(total, facts, published, recorded),
        ("shards", total.shards, expected_shards, published and published.shards),
        ("size", size_text(total.bytes), None, None),
    ]


def _class_line(
    total: SplitReport, facts: Facts, published: Published | None, recorded: SplitTotals | None
) -> list[Line]:
    """The line of the classes of a split, if the set has classes."""
    subject = facts.subject
    labels = facts.census.labels(subject.splits.index(total.split))
    classes = total.classes if published else len(labels)
    if not classes and not subject.has_classes:
        return []
    expected_classes = _expected_classes(facts, published, recorded)
    return [("classes", classes, expected_classes, published and published.classes)]


def _expected_classes(
    facts: Facts, published: Published | None, recorded: SplitTotals | None
) -> int | None:
    """The classes that a split should have, None if that is unknown."""
    has_set_aside = facts.manifest is not None and facts.manifest.has_set_aside
    if recorded and not has_set_aside and facts.subject.has_classes:
        return recorded.classes
    if published and not recorded and facts.verdict.level != "part":
        return published.classes
    return None


def _box_line(
    total: SplitReport, facts: Facts, published: Published | None, recorded: SplitTotals | None
) -> list[Line]:
    """The line of the boxes of a split, if the set has boxes."""
    if not facts.subject.has_boxes:
        return []
    manifest = facts.manifest
    # The totals of the manifest also count images that were set aside.
    has_set_aside = manifest is not None and manifest.has_set_aside
    expected_boxes = None
    if recorded and published and not has_set_aside:
        expected_boxes = recorded.boxes
    return [("boxes", total.boxes, expected_boxes, published and published.boxes)]


# problems -----------------------------------------------------------------------------------------


def problem_groups(facts: Facts) -> list[dict[str, Any]]:
    """The problems by kind, in the order in which they were found;
    SHOWN_PROBLEMS of them are listed.
    """
    problems_by_kind: defaultdict[str, list[Problem]] = defaultdict(list)
    for problem in facts.verdict.shown_problems:
        problems_by_kind[problem.kind.value].append(problem)
    groups = []
    for kind, problems in problems_by_kind.items():
        share = SHOWN_PROBLEMS // len(problems_by_kind)
        groups.append(_group(kind, problems, share, facts))
    return groups


def _group(kind: str, problems: Sequence[Problem], share: int, facts: Facts) -> dict[str, Any]:
    """The first ``share`` of these problems as rows;
    ``remedy`` applies to all, "" if each has its own.
    """
    remedies = [facts.without_paths(problem.remedy) for problem in problems]
    common = ""
    own_remedies = remedies
    if len(set(remedies)) == 1:
        common = remedies[0]
        own_remedies = [""] * len(remedies)
    rows = []
    for problem, own_remedy in zip(problems[:share], own_remedies, strict=False):
        detail = facts.without_paths(problem.detail)
        rows.append((problem.subject, detail, own_remedy))
    count = sum(problem.count for problem in problems)
    return {"kind": kind, "total": len(problems), "count": count, "remedy": common, "rows": rows}


# features -----------------------------------------------------------------------------------------


def feature_rows(facts: Facts) -> list[dict[str, Any]]:
    """A row per feature that a recipe promises:
    how many records have it, how many values, and their bounds.
    """
    record_count = len(facts.census.rows) - len(facts.census.marked(UNREAD))
    rows = []
    for name, promised in sorted(facts.subject.features.items()):
        counts = facts.census.features.get(name, FeatureCensus())
        kind = str(promised.get("kind"))
        is_optional = bool(promised.get("optional"))
        row = {
            "name": name,
            "kind": kind,
            "is_optional": is_optional,
            "records": counts.records,
            "bounds": _bounds_text(counts, kind),
            "differs": counts.records < record_count and not is_optional,
            "counts": spread_text(counts.fewest, counts.most),
        }
        rows.append(row)
    return rows


def _bounds_text(counts: FeatureCensus, kind: str) -> str:
    """The bounds of a feature's numbers, or of the lengths of its byte strings."""
    form = "{:.6g}" if kind == "float" else "{:,}"
    bounds = spread_text(counts.low, counts.high, form)
    if kind == "bytes" and bounds:
        bounds += " byte" if bounds == "1" else " bytes"
    if counts.not_numbers:
        bounds += f", NaN in {number_of(counts.not_numbers, 'record')}"
    return bounds


def spread_text(low: float, high: float, form: str = "{:,}") -> str:
    """The bounds of some numbers: "3 to 1,024", or "3" if all are the same;
    "" if there are none.
    """
    if low > high:
        return ""
    texts = [form.format(low), form.format(high)]
    return " to ".join(dict.fromkeys(texts))


# where the shards come from -----------------------------------------------------------------------


def origin(facts: Facts) -> Iterator[tuple[str, str, bool]]:
    """Order, fingerprint, sources, settings and versions:
    name, value, and whether the value is an exact code.
    """
    verdict, manifest = facts.verdict, facts.manifest
    is_own, thing = facts.subject.is_own, facts.subject.thing
    if not is_own and not facts.is_file:
        if verdict.flavour:
            flavour = "; ".join((verdict.flavour, *verdict.differences))
            yield "records", flavour, False
        yield "order", verdict.order, False
    if verdict.fingerprint:
        yield "fingerprint", verdict.fingerprint, True
    if manifest is None or facts.is_foreign:
        yield "made by", "unknown: there is no sound manifest", False
    else:
        recipe = " and a recipe" if is_own else ""
        yield "made by", f"imagenet-prep {manifest.version}{recipe}", False
        for split, source in manifest.sources.items():
            if isinstance(source, dict):
                yield from _source_lines(split, source, thing, is_own=is_own)
        for name, setting in manifest.settings.items():
            yield name.replace("_", " "), _json_text(setting), False
    libraries = f"Jinja2 {version('jinja2')}, Pillow {version('pillow')}"
    yield "report by", f"imagenet-prep {describe_version()}, {libraries}", False


def _source_lines(
    split: str, source: Mapping[str, Any], thing: str, *, is_own: bool
) -> Iterator[tuple[str, str, bool]]:
    """The source of a split, with counts, and its digest; ``thing`` is the word for a record."""
    if is_own:
        counts = number_of(source.get("images", 0), thing)
    else:
        names = [name for name in ("images", "boxes", "skipped") if name in source]
        counts = _json_text({name: source[name] for name in names})
    yield f"{split} from", f"{source.get('name', '')}; {counts}", False
    yield f"{split}, names and sizes", str(source.get("names_and_sizes", "")), True


def _json_text(value: object) -> str:
    """A value of a JSON file as text."""
    if isinstance(value, dict):
        return _json_object_text(value)
    if isinstance(value, list):
        return ", ".join(map(_json_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "none"
    return str(value)


def _json_object_text(members: Mapping[str, object]) -> str:
    """The members of a JSON object that are not null."""
    texts = []
    has_objects = False
    for name, member in members.items():
        words = name.replace("_", " ")
        if isinstance(member, dict):
            has_objects = True
            texts.append(f"{words}: {_json_text(member)}")
        elif member is not None:
            texts.append(f"{words} {_json_text(member)}")
    separator = "; " if has_objects else ", "
    return separator.join(texts)
