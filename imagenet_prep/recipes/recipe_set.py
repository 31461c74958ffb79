"""RecipeSet: the data set of a recipe, to be made, or known from its manifest or its plan."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import CheckedDataset, SetFindings
from imagenet_prep.checks.examiner import Examiner, PromiseExaminer, no_words
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.planned_set import PlannedSet
from imagenet_prep.datasets.stored_plan import planned_manifest
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import OptionValues, command, mention
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.model import Engine, OnDamaged, Problem, Progress, State
from imagenet_prep.recipes.set_totals import (
    base_split,
    count_set_aside,
    split_problems,
    wrong_totals,
)
from imagenet_prep.state.manifest import (
    RECIPE,
    Manifest,
    changed_boxes_text,
    count_changed_boxes,
    features_by_column,
)
from imagenet_prep.state.numbering import box_classes
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, locate, real_path
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_shards import Checked
    from imagenet_prep.checks.inventory import Inventory
    from imagenet_prep.checks.verdict import Depth, ReasonedLevel, SplitReport
    from imagenet_prep.recipes.recipe_file import RecipeFile
    from imagenet_prep.recipes.recipe_listing import RecipeListing


@dataclass(frozen=True, slots=True)
class RecipeSet(CheckedDataset):
    """The data set of a recipe; see Dataset.

    Args:
        path: the recipe's file, if known.
        root: the folder of its relative paths, if that is not the recipe's own folder.
        manifest: of its shards; before they are finished, the one that their plan promises.
        file: the recipe as it was read, if its shards are to be made.
        allow_python: whether convert may run the function that is the recipe's source.
    """

    path: Path | None
    root: AnyPath | None = None
    manifest: Manifest | None = None
    file: RecipeFile | None = None
    allow_python: bool = False

    is_part = False
    compares_records = False
    published = None
    words_of = staticmethod(no_words)

    @classmethod
    def read(cls, recipe: Path | RecipeFile, *, allow_python: bool = False) -> RecipeSet:
        """The data set to be made of a recipe; raises as ``recipes.loading.read``."""
        from imagenet_prep.recipes.loading import read

        file = read(recipe) if isinstance(recipe, Path) else recipe
        return cls(file.path, file=file, allow_python=allow_python)

    @classmethod
    def find(cls, records: SetRecords, manifest: Manifest | None) -> RecipeSet | None:
        """The recipe's set of a folder, from its manifest if there is one;
        None if its shards are not a recipe's.
        """
        if manifest is not None and manifest.dataset.kind != RECIPE:
            return None
        plan = records.plan
        if plan is None:
            has_prefix = bool(records.layout.set_name)  # ImageNet has none
            if manifest is None and not has_prefix:
                return None
            return cls(None, None, manifest)
        if manifest is None:
            manifest = planned_manifest(plan)
        if manifest.dataset.kind != RECIPE:
            return None
        path: Path | None = None
        root: AnyPath | None = None
        if plan.recipe.get("recipe"):
            path = local_or_none(locate(plan.recipe["recipe"]))
        if plan.recipe.get("root"):
            root = locate(plan.recipe["root"])
        return cls(path, root, manifest)

    @property
    def name(self) -> str:
        """The name of the recipe."""
        if self.manifest is not None:
            return self.manifest.dataset.name
        if self.path is not None:
            return self.path.stem
        return "data set"

    @property
    def set_name(self) -> str:
        """The prefix that the recipe gives its shards."""
        from imagenet_prep.recipes.rules import prefix_of

        if self.file is None:
            return ""
        _, prefix = prefix_of(self.file)
        return prefix

    @property
    def options(self) -> MakingOptions:
        """The settings of the manifest, or of the recipe."""
        if self.file is not None:
            names = ("compression", "on_damaged", *_READING)
            settings = {name: getattr(self.file.recipe, name) for name in names}
            return MakingOptions(**settings)
        if self.manifest is None:
            return MakingOptions()
        compression = self.manifest.settings.get("compression", "none")
        on_damaged: OnDamaged = "skip" if self.manifest.has_set_aside else "refuse"
        return MakingOptions(compression=compression, on_damaged=on_damaged)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that manifest or plan name; none before they exist."""
        if self.manifest is None:
            return ()
        return self.manifest.dataset.splits

    @property
    def images(self) -> Mapping[str, int]:
        """How many records each split holds."""
        counts = dict.fromkeys(self.splits, 0)
        if self.manifest is not None:
            for split in self.splits:
                totals = self.manifest.totals.get(split)
                if totals is not None:
                    counts[split] = totals.images
        return counts

    def notes(self, inventory: Inventory, *, is_part: bool) -> Iterator[str]:
        """Count the records without a label, and name the images whose boxes the recipe changed."""
        if self.manifest is None:
            return
        for split, totals in self.manifest.totals.items():
            if totals.unlabelled:
                records = number_of(totals.unlabelled, "record")
                yield f"{split}: {records} of {totals.images:,} without a label"
        changed = count_changed_boxes(self.manifest.sources.values())
        if changed:
            yield changed_boxes_text(changed)

    # what its shards must be ----------------------------------------------------------------------

    def examiner(self, foreign: Sequence[AnyPath], *, decode: bool) -> PromiseExaminer:
        """The examiner that compares each record with the promise."""
        assert self.manifest is not None
        settings = self.manifest.settings
        promised = self.manifest.dataset.features
        holders = features_by_column(settings)
        classes = box_classes(settings)
        return PromiseExaminer(promised, decode, holders, classes)

    def check_set(
        self, inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool
    ) -> SetFindings:
        """Whether the shards hold what the manifest counts:
        names may lack their folders, and be there twice.
        """
        from imagenet_prep.recipes.divisions import missing_classes

        manifest = inventory.manifest
        problems: list[Problem] = []
        for split in self.splits:
            problems += split_problems(split, inventory, checked)
        labels = defaultdict[str, set[int]](set)
        for split in self.splits:
            labels[base_split(split)] |= checked.labels[split]
        if manifest is None:
            return SetFindings(tuple(problems), (), flavour="recipe")
        if not problems:
            images = count_set_aside(inventory)  # `expected` counts listed files
            for split in self.splits:
                images[base_split(split)] += manifest.totals[split].images
            expected = manifest.settings.get("expected", {})
            problems += wrong_totals(expected, images, labels)
        class_names: dict[str, list[str]] = {}
        for split, split_labels in labels.items():
            class_names[split] = [f"label {label}" for label in sorted(split_labels)]
        warnings = missing_classes(class_names)
        return SetFindings(tuple(problems), tuple(warnings), flavour="recipe")

    def claim(
        self,
        inventory: Inventory,
        totals: Sequence[SplitReport],
        findings: SetFindings,
        *,
        is_part: bool,
    ) -> ReasonedLevel:
        """Complete if the recipe expects a number of images of all splits,
        which ``check_set`` compares.
        """
        from imagenet_prep.checks.verdict import ReasonedLevel

        records = sum(total.records or 0 for total in totals)
        is_known = self._expects_all_images()
        set_aside = count_set_aside(inventory).total()
        listed_images = records + set_aside
        if set_aside and is_known:
            counts = f"{records:,} in records, {set_aside:,} set aside as damaged"
            reason = f"expected {number_of(listed_images, 'image')}: {counts}."
            return ReasonedLevel("incomplete", reason)
        if set_aside:
            count = number_of(listed_images, "listed record")
            reason = f"{records:,} of {count} {'is' if records == 1 else 'are'} in."
            return ReasonedLevel("incomplete", reason)
        if is_known:
            return ReasonedLevel("complete", f'the shards of "{self.name}" are whole and right.')
        unknown = (
            f'How many records "{self.name}" should have is not known: '
            "its recipe has no `expected` number."
        )
        count = f"all {records:,} listed records are in."
        if records == 1:
            count = "the 1 listed record is in."
        return ReasonedLevel("as listed", f"{count} {unknown}")

    def _expects_all_images(self) -> bool:
        """Whether the recipe has the number of images of the set, or of each split."""
        expected: Mapping[str, Any] = {}
        if self.manifest is not None:
            expected = self.manifest.settings.get("expected", {})
        if "images" in expected:
            return True
        splits_with_number: set[str] = set()
        for name, totals in expected.items():
            if isinstance(totals, dict) and "images" in totals:
                splits_with_number.add(name)
        base_splits = set(map(base_split, self.splits))
        return base_splits == splits_with_number

    # making them ----------------------------------------------------------------------------------

    def refuse_without_source(self) -> None:
        """Raise InputError if the recipe file has moved, or the plan that names it is lost."""
        from imagenet_prep.recipes.recipe_paths import fault_of_path

        if self.path is None:
            raise InputError(
                f"the recipe of {self.name} is not known: imagenet-prep/plan/plan.json in the "
                "folder of the shards is damaged or missing",
                "expected that file: it names the recipe",
                Hint(
                    "run the same ",
                    mention("convert"),
                    ", with --config RECIPE: it writes the plan again; then repair again",
                ),
            )
        problem = fault_of_path(self.path, "file")
        if problem:
            raise InputError(
                f"{self.path}, the recipe of these shards, {problem}",
                "expected the recipe that the shards were made from",
                "put it back, and run the same command again; or, if it was moved, run the same "
                "convert with --config and its new path",
            )

    def plan(
        self,
        records: SetRecords,
        engine: Engine,
        options: MakingOptions,
        progress: Progress,
        splits: Collection[str] = (),
    ) -> PlannedSet:
        """List its files, and cut every split into plans;
        with ``splits``, the recipe must be the recorded one.
        """
        from imagenet_prep.recipes.growth import grow
        from imagenet_prep.recipes.loading import load, read
        from imagenet_prep.recipes.recipe_paths import need_recorded_root

        assert self.path is not None
        layout = records.layout
        if splits and layout.raw is None and self.root is not None:
            need_recorded_root(self.root, layout)
        file = self.file or read(self.path)
        root = layout.raw or self.root
        set_name = layout.set_name or self.set_name
        set_records = records.at(replace(layout, set_name=set_name))
        sealed = self._sealed_rows(file, set_records, options, are_recorded=bool(splits))
        file = replace(file, sealed=sealed)
        dataset = load(
            file,
            root,
            engine,
            records=records,
            on_damaged=options.on_damaged,
            progress=progress,
            overwrite=options.overwrite and not splits,
        )
        if dataset.grows and not options.overwrite:
            dataset = grow(dataset, set_records, adds=not splits)
        call_options = _of_the_call(options, file)
        if self.allow_python:
            call_options = (*call_options, ("allow_python", True))
        recipe_entry = self._recipe_entry(file, root)
        planned = replace(dataset.cut(), options=call_options, recipe=recipe_entry)
        if splits:
            return self._recorded(planned, splits)
        return planned

    def _recipe_entry(self, file: RecipeFile, root: AnyPath | None) -> dict[str, str]:
        """The plan's entry of the recipe: where it is, where its paths start, and sealed rows of
        a Python source.
        """
        from imagenet_prep.recipes.python_source import RECORDED
        from imagenet_prep.recipes.recipe_paths import data_root, is_root_named

        assert self.path is not None
        recipe = self.path.resolve()
        entry = {"recipe": str(recipe)}
        if is_root_named(root):
            local_root = local_or_none(root) if root else None
            entry["root"] = str(data_root(file, local_root))
        if file.sealed:
            entry[RECORDED] = file.sealed.name
        return entry

    def _sealed_rows(
        self, file: RecipeFile, records: SetRecords, options: MakingOptions, *, are_recorded: bool
    ) -> Path | None:
        """The rows of a Python source, made unless they are there, or must be; None for another
        source.
        """
        from imagenet_prep.recipes.python_source import require_rows, sealed_rows

        if are_recorded:
            return require_rows(file, records)
        may_grow = file.recipe.grow and self.allow_python
        is_again = options.overwrite or may_grow
        return sealed_rows(file, records, is_again=is_again, is_allowed=self.allow_python)

    def list_raw(
        self,
        layout: Layout,
        engine: Engine,
        options: MakingOptions,
        progress: Progress,
        depth: Depth | None,
    ) -> RecipeListing:
        """List the recipe's files; see Dataset."""
        from imagenet_prep.recipes.loading import read
        from imagenet_prep.recipes.python_source import recorded_rows, refuse_unlisted
        from imagenet_prep.recipes.recipe_listing import list_recipe

        assert self.path is not None
        file = self.file or read(self.path)
        records = SetRecords(replace(layout, set_name=self.set_name))
        sealed = recorded_rows(records)
        if sealed is None and file.recipe.source and file.recipe.source.kind == "python":
            raise refuse_unlisted(file, layout, is_made=records.plan is not None)
        file = replace(file, sealed=sealed)
        root = layout.raw or self.root
        return list_recipe(file, root, engine, progress, depth)

    def _recorded(self, planned: PlannedSet, splits: Collection[str]) -> PlannedSet:
        """These splits; raises InputError if the settings are not those of the manifest."""
        assert self.manifest is not None
        names: list[str] = []
        if planned.settings != self.manifest.settings:
            from imagenet_prep.recipes.changed_settings import changed_settings

            names, difference = changed_settings(self.manifest.settings, planned.settings)
        if names:
            problem = f"{self.path} gives other settings than the shards were made with"
            raise InputError(
                f"{problem}: {', '.join(names)}",
                difference,
                Hint(
                    "restore the recipe, the files and the versions of libraries as they were; or, "
                    "to make the set again as they are now, ",
                    CONVERT_AGAIN,
                ),
            )
        chosen_splits = [split for split in planned.splits if split.catalog.split in splits]
        return replace(planned, splits=tuple(chosen_splits))

    def following(self, records: SetRecords, states: Mapping[str, State]) -> str:
        """The same conversion again. A folder in the recipe's prefix is
        part of where the shards are: not given.
        """
        from imagenet_prep.recipes.loading import read
        from imagenet_prep.recipes.rules import prefix_of

        folder = ""
        if self.path is not None:
            with contextlib.suppress(PrepError):  # convert says what is wrong with it
                folder, _ = prefix_of(read(self.path))
        layout = records.layout
        output = layout.output
        data_dir = layout.data_dir
        if output:
            output = _outside(output, folder)
        else:
            data_dir = _outside(data_dir, folder)
        places = Layout(data_dir, layout.raw or self.root, output).elsewhere()
        options: list[tuple[str, Any]] = [*places, ("config", self.path or "RECIPE")]
        if records.plan is not None:
            options += records.plan.options
        return command("convert", data_dir, tuple(options))


def _of_the_call(options: MakingOptions, file: RecipeFile) -> OptionValues:
    """The options of convert that the recipe does not say."""
    chosen: list[tuple[str, Any]] = []
    if options.on_damaged != file.recipe.on_damaged:
        chosen.append(("on_damaged", options.on_damaged))
    if options.overwrite:
        chosen.append(("overwrite", True))
    return tuple(chosen)


_READING = ("read_order", "memory")


def refuse_made(records: SetRecords) -> None:
    """Refuse to start another data set in the folder of a recipe's set.

    Raises:
        UsageError: it is.
    """
    records = records.first_set()
    recipe_set = RecipeSet.find(records, records.usable_manifest)
    if recipe_set is None:
        return
    if recipe_set.manifest is None and recipe_set.path is None:
        return
    again = "give its recipe with --config"
    if recipe_set.path and recipe_set.path.is_file():
        again = recipe_set.following(records, {})
    raise UsageError(
        f"{records.layout.output_dir} holds the data set {recipe_set.name}, made with a recipe",
        "expected --config with that recipe: without it, the command makes ILSVRC2012",
        Hint(again, "    (to make ILSVRC2012: choose another folder, or --output)"),
    )


def _outside(path: AnyPath, folder: str) -> AnyPath:
    """The path without the folder that it ends with;
    an absolute folder stays: it may be DATA_DIR itself.
    """
    if not folder or folder.startswith("/"):
        return path
    parts = Path(folder).parts
    if not parts:
        return path
    end = "/".join(("", *parts))
    for candidate in (path, real_path(path)):
        text = str(candidate)
        if text.endswith(end):
            return locate(text.removesuffix(end))
    return path
