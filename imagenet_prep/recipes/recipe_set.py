"""A set that a recipe made, as far as it is known: from its manifest, or from its plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.checks.examiner import Examiner, KnownSet, SetFindings, no_words
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import PlannedSplit, load_plan, refuse_other_images
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.model import Engine, Problem, ProblemKind, Progress, State
from imagenet_prep.state.manifest import RECIPE, Manifest, usable_manifest
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, locate

if TYPE_CHECKING:
    from imagenet_prep.checks.examiner import PromiseExaminer
    from imagenet_prep.checks.inventory import Checked, Inventory


@dataclass(frozen=True, slots=True)
class MadeByRecipe(KnownSet):
    """A data set made by a recipe; see KnownSet.

    Args:
        manifest: once it is whole.
        path: the recipe file.
        root: the folder of its relative paths, if that is not the recipe's own folder.
    """

    manifest: Manifest | None
    path: Path | None = None
    root: AnyPath | None = None

    is_part = False
    is_known_before_its_end = False
    compares_records = False
    published = None
    words_of = staticmethod(no_words)

    @property
    def name(self) -> str:
        """The name of the recipe."""
        if self.manifest is not None:
            return self.manifest.dataset.name
        return self.path.stem if self.path else "data set"

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the manifest names; none before it exists."""
        return self.manifest.dataset.splits if self.manifest else ()

    @property
    def images(self) -> Mapping[str, int]:
        """How many records each split holds."""
        totals = self.manifest.totals if self.manifest else {}
        return {split: totals[split].images if split in totals else 0 for split in self.splits}

    def following(self, layout: Layout, states: Mapping[str, State]) -> str:
        """Repair a finished set, or resume the conversion."""
        if self.manifest is None:
            return self.call_again(layout)
        plan = load_plan(layout)
        return command("repair", layout.data_dir, layout.elsewhere(plan.raw_dir if plan else None))

    # what its shards must be -----------------------------------------------------------------------------------

    def refuse_unfinished(self, layout: Layout, damage: str) -> None:
        """Its shards are not to be compared with ILSVRC2012, and nothing but the manifest tells what they must be."""
        if self.manifest is not None:
            return
        again = f"run the same imagenet-prep convert again, with --config {self.path or 'RECIPE'}"
        if damage:
            what = f"{layout.manifest_path} is damaged: {damage}"
            detail = "nothing else tells what the shards of a recipe must be"
            raise InputError(what, detail, f"remove it and {again}")
        merge = command("merge", layout.data_dir, Layout(layout.data_dir, output=layout.output).elsewhere())
        raise InputError(
            f"the conversion in {layout.output_dir} is not finished",
            f"expected {layout.manifest_path.name}, which is written when every shard is done",
            f"it finishes the set, or names the ranks to run again: {merge}"
            if layout.rank_parts()
            else f"{again}: finished shards are kept",
        )

    def examiner(self, foreign: Sequence[AnyPath], *, decode: bool) -> PromiseExaminer:
        """The examiner that compares each record with the promise."""
        from imagenet_prep.checks.examiner import PromiseExaminer, holders

        assert self.manifest is not None
        return PromiseExaminer(self.manifest.dataset.features, decode, holders(self.manifest.settings))

    def check_set(self, inventory: Inventory, checked: Checked, examiner: Examiner, *, is_part: bool) -> SetFindings:
        """Whether the shards hold what the manifest counts: names may lack their folders, and be there twice."""
        from imagenet_prep.checks.inventory import check_totals
        from imagenet_prep.recipes.splits import missing_classes

        assert self.manifest is not None
        problems: list[Problem] = []
        for split in self.splits:
            shards = inventory.of(split)
            found = checked.of(shards)
            own = [problem for report in found for problem in report.problems]
            if not own and len(found) == len(shards) and split in self.manifest.totals:
                own += check_totals(split, found, len(checked.labels[split]), self.manifest, counts_alone=True)
            problems += own
        if not problems:
            problems += self._check_expected(checked)
        labels = {split: [f"label {label}" for label in sorted(checked.labels[split])] for split in self.splits}
        return SetFindings(tuple(problems), tuple(missing_classes(labels)), flavour="recipe")

    def _check_expected(self, checked: Checked) -> list[Problem]:
        """The totals that the recipe expects, compared with the records of all splits."""
        from imagenet_prep.recipes.rules import totals_in

        remedy = "get the missing images and make the set again, or correct `expected` in the recipe"
        assert self.manifest is not None
        problems = []
        for split, name, count in totals_in(self.manifest.settings.get("expected", {})):
            those = [each for each in self.splits if split in ("", each)]
            labels = {label for each in those for label in checked.labels[each]}
            found = sum(self.manifest.totals[each].images for each in those) if name == "images" else len(labels)
            if found != count and (found or name == "images"):  # labels under other names are not counted
                said = f"expected {count:,} {name}, got {found:,}"
                problems.append(Problem(ProblemKind.WRONG_COUNT, split or name, said, remedy))
        return problems

    # making it again -------------------------------------------------------------------------------------------

    def refuse_without_source(self) -> None:
        """Raise InputError if the recipe file has moved."""
        if self.path is None or kind_of(self.path) != "file":
            raise InputError(
                f"the recipe of {self.name} isn't there" + (f": {self.path}" if self.path else ""),
                "expected the file that the shards were made by",
                "put it back, and repair again",
            )

    def plan_again(
        self, layout: Layout, engine: Engine, manifest: Manifest, splits: Collection[str], progress: Progress
    ) -> tuple[MakingOptions, list[PlannedSplit]]:
        """Some splits as the recipe says now, which must be as it said then; and compared with them."""
        from imagenet_prep.recipes.loading import load

        self.refuse_without_source()
        path, root, skip_bad = self.path, layout.raw or self.root, manifest.has_set_aside
        assert path is not None
        found = load(path, root, engine, layout=layout, skip_bad=skip_bad, progress=progress)
        planned = found.cut()
        names = sorted({*planned.settings, *manifest.settings})
        changed = [name for name in names if planned.settings.get(name) != manifest.settings.get(name)]
        if changed:
            raise InputError(
                f"{path} is not the recipe that the shards were made by: it differs in {', '.join(changed)}",
                f"expected {manifest.settings.get(changed[0])!r}, got {planned.settings.get(changed[0])!r}",
                "bring back the recorded recipe, or make the set again with this one: the same convert, --overwrite",
            )
        again = [split for split in planned.splits if split.catalog.split in splits]
        for split in again:
            refuse_other_images(split, manifest)
        return MakingOptions(compression=found.compression, skip_bad=skip_bad), again

    def call_again(self, layout: Layout) -> str:
        """The same conversion again. A folder in the recipe's prefix is part of where the shards are: not given."""
        from imagenet_prep.recipes.loading import read
        from imagenet_prep.recipes.rules import prefix_of

        try:
            folder, _ = prefix_of(read(self.path)) if self.path else ("", "")
        except PrepError:
            folder = ""  # convert says what is wrong with it
        root = layout.raw or self.root
        output = _outside(layout.output, folder) if layout.output else None
        data_dir = layout.data_dir if layout.output else _outside(layout.data_dir, folder)
        plan = load_plan(layout) if self.manifest is None else None
        given = (("config", self.path or "RECIPE"), *(plan.options if plan else ()))
        return command("convert", data_dir, (*Layout(data_dir, root, output).elsewhere(), *given))


def find_made(layout: Layout, manifest: Manifest | None) -> MadeByRecipe | None:
    """The recipe's set, from its manifest if there is one; None if the shards are not a recipe's."""
    plan = load_plan(layout)
    recipe, root = (plan.recipe.get(key) if plan else None for key in ("recipe", "root"))
    path = local_or_none(locate(recipe)) if recipe else None
    known = manifest or plan
    is_made = known.dataset.kind == RECIPE if known else bool(layout.set_name)  # ImageNet's sets have no prefix
    return MadeByRecipe(manifest, path, locate(root) if root else None) if is_made else None


def refuse_made(layout: Layout) -> None:
    """Refuse to start another data set in the folder of a recipe's set.

    Raises:
        UsageError: it is.
    """
    layout = layout.sets()[0]
    made = find_made(layout, usable_manifest(layout.manifest_path))
    if made is None or (made.manifest is None and made.path is None):
        return
    again = made.call_again(layout) if made.path else "give its recipe with --config"
    raise UsageError(
        f"{layout.output_dir} holds shards of the recipe {made.name}",
        "expected a folder for ILSVRC2012 alone: without --config that is what would be made",
        f"{again}    (ILSVRC2012: choose another folder, or --output)",
    )


def _outside(path: AnyPath, folder: str) -> AnyPath:
    """The path without the folder that it ends with; an absolute folder stays: it may be DATA_DIR itself."""
    parts = () if folder.startswith("/") else Path(folder).parts
    for each in (path, path.resolve()):
        end = "/".join(("", *parts))
        if parts and str(each).endswith(end):
            return locate(str(each).removesuffix(end))
    return path
