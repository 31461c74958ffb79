"""finish_set: the manifest of a set whose shards are all done, written last, after a look at each of them."""

from __future__ import annotations

from collections.abc import Callable

from imagenet_prep.datasets.plan import differences, planned_manifest, remove_other_rows
from imagenet_prep.errors import UsageError
from imagenet_prep.shards.run import take_in_parts
from imagenet_prep.state.indexes import filled, not_done
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.storage.layout import Layout


def find_lost(plan: Plan, layout: Layout, journal: Journal) -> list[str]:
    """The shards of a plan that are not there as the journal says: size, index and last record are compared."""
    return not_done(layout, planned_manifest(plan), journal)


def finish_set(
    plan: Plan, layout: Layout, journal: Journal, refuse_images: Callable[[Layout, Manifest], None]
) -> Manifest:
    """Write the manifest of a set, and remove the records of ranks and of older plans; ``find_lost`` found none.

    Raises:
        UsageError: another run has claimed the folder since, with --overwrite.
        InputError: ``refuse_images`` raises it: the images are not those of the data set.
    """
    refuse_superseded(plan, layout)
    manifest = filled(planned_manifest(plan), journal)
    refuse_images(layout, manifest)
    manifest.save(layout.manifest_path)
    take_in_parts(layout, journal)
    remove_other_rows(plan, layout)
    return manifest


def refuse_superseded(plan: Plan, layout: Layout) -> None:
    """Raise UsageError if another run has claimed the set since, with --overwrite."""
    claimed = load_plan(layout)
    if claimed is None or claimed.key == plan.key:
        return
    raise UsageError(
        f"another convert claimed {layout.output_dir} for a set of other images or settings",
        f"expected no other imagenet-prep convert there; these differ: {', '.join(differences(plan, claimed))}",
        "run one of them again with --overwrite, after the other has ended",
    )
