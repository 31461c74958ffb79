"""finish_set: the manifest of a set whose shards are all done,
written last, after a look at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from imagenet_prep.datasets.plan_differences import differences
from imagenet_prep.datasets.stored_plan import planned_manifest, remove_other_rows
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.hints import Hint, run_again
from imagenet_prep.shards.unfinished import take_in_parts
from imagenet_prep.state.damaged_images import remove_damaged_images, save_damaged_images
from imagenet_prep.state.indexes import filled, not_done
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.state.replacement import Identity, is_same
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout, grown_from, split_of
from imagenet_prep.text import number_of


def find_lost(
    plan: Plan, layout: Layout, journal: Journal, seen: Mapping[str, Identity] = {}
) -> list[str]:
    """The shards of a plan that are not there as the journal says.

    A file is not read again if it has the identity that it had when it was made, or when its index
    was read: ``seen``. Size, index and last record of all others are compared; in an object store,
    those of every shard.
    """
    unchanged = {
        name for name, identity in seen.items() if is_same(layout.shard_path(name), identity)
    }
    planned = planned_manifest(plan)
    doubtful = {name: info for name, info in planned.shards.items() if name not in unchanged}
    return not_done(layout, replace(planned, shards=doubtful), journal)


def finish_set(
    plan: Plan, layout: Layout, journal: Journal, refuse_images: Callable[[Layout, Manifest], None]
) -> Manifest:
    """Write the manifest of a set, after its list of damaged images; ``find_lost`` found none.

    Then the records of ranks and of older plans are removed.

    Raises:
        UsageError: another run has claimed the folder since, with --overwrite.
        InputError: the folder holds other shards too; or ``refuse_images`` raises it: the images
            are not those of the data set.
    """
    plan = refuse_superseded(plan, layout)
    _refuse_strays(plan, layout)
    manifest = filled(planned_manifest(plan), journal)
    refuse_images(layout, manifest)
    save_damaged_images(layout, manifest)
    manifest.save(layout.manifest_path)
    if not manifest.has_set_aside:
        remove_damaged_images(layout)
    take_in_parts(layout, journal)
    if plan.samples:
        save_bytes(layout.plan_path, replace(plan, samples={}).encode())
    remove_other_rows(plan, layout)
    return manifest


def _refuse_strays(plan: Plan, layout: Layout) -> None:
    """Raise InputError for shards of the plan's splits that it does not have:
    a glob would read them too.
    """
    splits = {*plan.dataset.splits, *plan.totals}
    shards = [name for name in layout.find_shards() if grown_from(split_of(name))[0] in splits]
    planned = plan.fingerprints_by_name()
    strays = [name for name in shards if name not in planned]
    if strays:
        count = number_of(len(strays), "shard")
        raise InputError(
            (
                f"{layout.output_dir} holds {count} that {layout.plan_path} does not list, "
                f"{strays[0]} first"
            ),
            "expected only shards that plan.json lists",
            Hint("move them to another folder, then ", run_again()),
        )


def refuse_superseded(plan: Plan, layout: Layout) -> Plan:
    """The plan on the disk, which may know of more copies of the images.

    Raises:
        UsageError: another run has claimed the set since, with --overwrite.
    """
    claimed = load_plan(layout) or plan
    if claimed.key == plan.key:
        return claimed
    raise UsageError(
        f"another convert has started in {layout.output_dir}, with other images or settings",
        f"these differ: {', '.join(differences(plan, claimed))}",
        "make this set in another folder with --output",
    )
