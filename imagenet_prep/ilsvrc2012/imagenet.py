"""ImageNet: the data set ILSVRC2012, with its plans, its checks and its descriptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import CheckedDataset, Published, SetFindings
from imagenet_prep.checks.examiner import Examiner
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import OptionValues, command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part, recorded_part
from imagenet_prep.ilsvrc2012.settings import ConvertOptions, expected_by_class, options_from
from imagenet_prep.model import Engine, Progress, ShardInfo, StageStatus, State
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_shards import Checked
    from imagenet_prep.checks.inventory import Inventory
    from imagenet_prep.checks.verdict import Depth, ReasonedLevel, SplitReport
    from imagenet_prep.datasets.planned_set import Asked, PlannedSet
    from imagenet_prep.ilsvrc2012.copy_listing import CopyListing
    from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
    from imagenet_prep.state.plan_file import Plan

_PLACE_OF_IMAGES = "FOLDER_WITH_IMAGES"


def _published(split: str, boxes: int | None) -> Published:
    return Published(facts.IMAGES[split], facts.CLASSES, facts.SHARDS[split], boxes)


def _numbers_of_demo(layout: Layout) -> OptionValues:
    """The options of the demo that made a folder; none if they can't be read."""
    with suppress(InputError):
        numbers = load_json(layout.demo_path)
        if isinstance(numbers, dict):
            return tuple(numbers.items())
    return ()


PUBLISHED = {
    facts.TRAIN: _published(facts.TRAIN, facts.BOXES),
    facts.VALIDATION: _published(facts.VALIDATION, None),
}
"""The known figures of each split of the whole data set."""


@dataclass(frozen=True, slots=True)
class ImageNet(CheckedDataset):
    """ILSVRC2012, or a part of it.

    Args:
        manifest: the manifest of its shards, if there is one.
        part: the classes of these shards.
        planned: the number of images that a part's unfinished conversion plans, by split.
        recipe_options: the settings that a recipe gives its shards.
    """

    manifest: Manifest | None = None
    part: Part = WHOLE
    planned: Mapping[str, int] = field(default_factory=dict)
    recipe_options: ConvertOptions | None = None

    splits = facts.SPLITS
    set_name = ""
    words_of = staticmethod(facts.words_of)
    compares_records = True

    @classmethod
    def made(cls, records: SetRecords, manifest: Manifest | None) -> ImageNet:
        """The data set of shards: from their manifest, or without one from the state of their
        conversion.

        Raises:
            InputError: the manifest has impossible classes or labels.
        """
        if manifest is not None:
            part = recorded_part(manifest.dataset.name, manifest.dataset.classes)
            return cls(manifest, part)
        plan = records.plan
        with suppress(InputError):
            if plan:
                part = recorded_part(plan.dataset.name, plan.dataset.classes)
                return cls(None, part, plan.expected)
        return cls()

    @property
    def name(self) -> str:
        """ILSVRC2012, or the part's name."""
        return self.part.name

    @property
    def options(self) -> ConvertOptions:
        """The settings of a recipe or a manifest, or the defaults;
        InputError if the manifest has impossible ones.
        """
        if self.recipe_options:
            return self.recipe_options
        return options_from(self.manifest) if self.manifest else ConvertOptions()

    # plans ----------------------------------------------------------------------------------------

    def ask(self, layout: Layout, options: ConvertOptions) -> Asked | None:
        """The copies that are there, their boxes, and the settings;
        None, too, where a split is missing.
        """
        from imagenet_prep.ilsvrc2012.plan_inputs import ask, find_sources

        sources = find_sources(layout)
        if len(sources) < len(facts.SPLITS):
            return None
        return ask(layout, options, sources)

    def plan(
        self,
        records: SetRecords,
        engine: Engine,
        options: ConvertOptions,
        progress: Progress,
        splits: Collection[str] = (),
    ) -> PlannedSet:
        """Index every split that is present, or ``splits``, and cut it into plans;
        raises as Dataset.
        """
        from imagenet_prep.ilsvrc2012.planning import plan

        return plan(records, engine, options, progress, splits)

    def list_raw(
        self,
        layout: Layout,
        engine: Engine,
        options: ConvertOptions,
        progress: Progress,
        depth: Depth | None,
    ) -> CopyListing:
        """List a copy, and compare names and numbers with the facts; see Dataset."""
        from imagenet_prep.ilsvrc2012.copy_comparison import list_copy

        return list_copy(layout, engine, options, progress, depth=depth)

    def stages_before(self, layout: Layout) -> tuple[StageStatus, ...]:
        """Download, untar, annotate."""
        from imagenet_prep.ilsvrc2012.raw_data import stages_before

        totals = self.manifest.totals if self.manifest else {}
        classes: dict[str, int] = {}
        for split in facts.SPLITS:
            total = totals.get(split)
            classes[split] = total.classes if total else len(self.part.labels)
        return stages_before(layout, classes)

    def following(self, records: SetRecords, states: Mapping[str, State]) -> str:
        """The first of download, annotate and convert that is needed; see Dataset."""
        layout = records.layout
        if states["convert"] == "not started":
            if layout.demo_path.exists():
                return command("demo", layout.data_dir, _numbers_of_demo(layout))
            missing_step = self._step_before(layout)
            if missing_step:
                from imagenet_prep.ilsvrc2012.raw_data import where_annotated

                annotated = where_annotated(layout)
                if annotated is None:
                    return missing_step
                return self._convert_command(records.at(annotated))
            from imagenet_prep.ilsvrc2012.box_search import can_annotate, find_annotations

            may_annotate = states["annotate"] == "not started" and can_annotate(layout)
            if may_annotate and find_annotations(layout, facts.TRAIN) is not None:
                elsewhere = Layout(layout.data_dir, layout.raw).elsewhere()
                return command("annotate", layout.data_dir, elsewhere)
        return self._convert_command(records)

    def _step_before(self, layout: Layout) -> str:
        """The command that makes the images of both splits readable; "" if they are."""
        from imagenet_prep.ilsvrc2012.astray import find_unread, own_images
        from imagenet_prep.ilsvrc2012.raw_data import fetched_from, find_source

        sources = {split: find_source(layout, split) for split in facts.SPLITS}
        missing = [split for split, source in sources.items() if source is None]
        if not missing:
            is_damaged = any(source.damage for source in sources.values() if source)
            kaggle = command("download", layout.data_dir, (("source", "kaggle"),))
            return kaggle if is_damaged else ""
        with suppress(InputError):  # a folder that can't be listed is the next step's to name
            for split in missing:
                unread = find_unread(layout, split)
                if unread is not None:
                    return unread.mend
            own_folder = own_images(layout)
            if own_folder:
                return command("init", own_folder)
        output = replace(layout, raw=None).elsewhere()
        if local_or_none(layout.data_dir) is None:  # download writes to a local folder
            settings = (*output, ("raw", _PLACE_OF_IMAGES))
            return command("convert", layout.data_dir, settings)
        if not layout.reads_own_raw:  # what download fetches is read without --raw
            return command("status", layout.data_dir, output)
        return command("download", layout.data_dir, fetched_from(layout))

    def _convert_command(self, records: SetRecords) -> str:
        """The command that makes these shards, or continues them."""
        layout, plan = records.layout, records.plan
        folders = layout.elsewhere(plan.raw_dir if plan else None)
        settings = self._recorded_settings(plan)
        return command("convert", layout.data_dir, (*folders, *settings))

    def _recorded_settings(self, plan: Plan | None) -> OptionValues:
        """The options of convert in the manifest; without one, those in the plan."""
        planned: OptionValues = plan.options if plan else ()
        if self.manifest is None:
            return planned
        if plan is not None and self.part.recorded:
            # only the plan has the path of a file that lists the classes; the manifest has its name
            return planned
        try:
            return self.options.chosen()
        except InputError:
            return planned

    # expectations for its shards ------------------------------------------------------------------

    @property
    def images(self) -> Mapping[str, int]:
        """The expected number of images of each split, from the manifest if there is one."""
        if self.manifest is None:
            return self._images_of_part(self.planned)
        images = dict.fromkeys(facts.SPLITS, 0)
        for split, total in self.manifest.totals.items():
            if split in images:
                images[split] = total.images
        return images

    def _images_of_part(self, counted: Mapping[str, int]) -> dict[str, int]:
        """The number of images of each split; ``counted`` are the counts of a complete copy."""
        return {split: self.part.images(split, counted.get(split, 0)) for split in facts.SPLITS}

    @property
    def is_part(self) -> bool:
        """Whether the manifest records less than the whole, by the facts;
        its own expectation doesn't count.
        """
        if self.manifest is None:
            return False
        totals = self.manifest.totals
        published = self.published
        if totals.keys() != published.keys():
            return True
        for split, total in totals.items():
            known = published[split]
            if (total.images, total.classes) != (known.images, known.classes):
                return True
        return False

    @property
    def published(self) -> Mapping[str, Published]:
        """The known figures of each split; for a part,
        train images are counted in a complete copy.
        """
        if self.part.is_whole:
            return PUBLISHED
        counted = dict(self.planned)
        if self.manifest is not None:
            for split, total in self.manifest.totals.items():
                counted[split] = total.expected
        images = self._images_of_part(counted)
        by_class = expected_by_class(self.manifest)
        if by_class:
            images[facts.TRAIN] = sum(by_class.values())
        classes = len(self.part.labels)
        published: dict[str, Published] = {}
        for split, count in images.items():
            published[split] = Published(count, classes, facts.SHARDS[split], None)
        return published

    def notes(self, inventory: Inventory, *, is_part: bool) -> Iterator[str]:
        """Describe the reference for these shards."""
        name = self.part.name
        if self.part.recorded:
            yield f"{name}: {self.part.words}"
        if inventory.manifest is not None:
            return
        if inventory.is_unfinished:
            yield "each shard is compared with the journal of the conversion"
        elif inventory.infos:
            yield "no usable manifest; each shard is compared with the journal of the conversion"
        else:
            yield f"no manifest; compared with {name} as {'a part' if is_part else 'a whole'}"

    def examiner(self, foreign: Sequence[AnyPath], *, decode: bool) -> ImageNetExaminer:
        """The examiner that compares each record with the facts, and with its maker's flavour."""
        from imagenet_prep.ilsvrc2012.flavours import INCEPTION, recognise
        from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer

        flavour = recognise(foreign) if foreign else INCEPTION
        return ImageNetExaminer(flavour, decode, self.part)

    def check_set(
        self, inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool
    ) -> SetFindings:
        """Check that every image occurs once, in order, and every class has one; see Dataset."""
        from imagenet_prep.ilsvrc2012.set_check import check_set

        return check_set(inventory, checked, examiner, is_part=is_part)

    def claim(
        self,
        inventory: Inventory,
        totals: Sequence[SplitReport],
        findings: SetFindings,
        *,
        is_part: bool,
    ) -> ReasonedLevel:
        """The level by counts, boxes, odd images and published sizes; see Dataset."""
        from imagenet_prep.ilsvrc2012.completeness import Evidence, claim

        return claim(Evidence(self.part, inventory, totals, findings), is_part=is_part)

    def refuse_images(self, layout: Layout, infos: Iterable[ShardInfo]) -> None:
        """Raise InputError if somebody encoded the images again; see Dataset."""
        from imagenet_prep.ilsvrc2012.completeness import refuse_encoded_again, repairs_of

        refuse_encoded_again(repairs_of(infos), layout.raw_dir)
