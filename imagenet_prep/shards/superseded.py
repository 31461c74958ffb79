"""remove_superseded: what contradicts a claimed plan goes, before its first shard is made."""

from __future__ import annotations

from imagenet_prep.model import Progress
from imagenet_prep.state.damaged_images import remove_damaged_images
from imagenet_prep.state.manifest import usable_manifest
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.replacement import Replacement, remove_other_lists
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import open_store
from imagenet_prep.storage.refusals import writing
from imagenet_prep.storage.space import Need
from imagenet_prep.text import number_of, size_text


def freed_space(
    replacement: Replacement | None, plan: Plan, layout: Layout, progress: Progress
) -> list[Need]:
    """The space of the replaced shards: they are removed before the first new shard is made."""
    if replacement is None:
        return []
    remaining = replacement.remaining(layout, plan)
    if not remaining:
        return []
    count = len(remaining)
    size = sum(replacement.shards[name][0] for name in remaining)
    shards = number_of(count, "shard of an older set is", "shards of an older set are")
    progress.note(f"{shards} removed first ({size_text(size)})")
    return [Need("convert", "replaced shards", layout.output_dir, -size, -3 * count)]


def remove_superseded(
    replacement: Replacement | None, plan: Plan, layout: Layout, *, is_locked: bool
) -> None:
    """Remove what contradicts the claimed plan: an old manifest,
    then the files on the list of replaced shards.
    """
    manifest = usable_manifest(layout.manifest_path)
    recorded = None
    if manifest is not None:
        recorded = {name: info.fingerprint for name, info in manifest.shards.items()}
    is_superseded = replacement is not None or recorded != plan.fingerprints_by_name()
    if layout.manifest_path.is_file() and is_superseded:
        with writing(layout.manifest_path):
            layout.manifest_path.unlink(missing_ok=True)
            open_store(layout.state_dir).sync_names()
        remove_damaged_images(layout)
    remove_other_lists(layout, plan)
    listed = Replacement.find(layout, plan)
    if listed is not None:
        listed.finish(layout, plan, is_locked=is_locked)
