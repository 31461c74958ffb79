"""Merges shards made by ranks into one set: writes its manifest, and replaces the ranks' journals by one."""

from __future__ import annotations

from dataclasses import dataclass

from imagenet_prep.datasets.plan import load_plan
from imagenet_prep.errors import InputError
from imagenet_prep.model import Progress, Silent
from imagenet_prep.shards.run import take_in_parts
from imagenet_prep.shards.share import ranks_of
from imagenet_prep.state.indexes import all_not_done, filled, settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.lock import hold
from imagenet_prep.text import listed, number_of


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """A finished set: shards, images, and the number of images that ``skip_bad`` set aside, by split."""

    shards: dict[str, int]
    images: dict[str, int]
    set_aside: dict[str, int]


def merge(layout: Layout, *, progress: Progress | None = None) -> MergeSummary:
    """Finish a set whose shards the ranks of ``convert`` made; it reads no raw data and makes no shard.

    The remains of killed ranks are removed, and the records of all ranks become one. A finished set stays unchanged.

    Raises:
        InputError: no rank has made anything there; or shards are missing: the error names the ranks to run again.
        BusyError, SpaceError, WriteError: another run works here, no space is left, or the storage fails.
    """
    progress, layout = progress or Silent(), layout.one_set()
    with hold(layout.lock_paths):
        plan = load_plan(layout)
        if plan is None or (layout.manifest_path.exists() and not layout.rank_parts()):
            return _finished_before(layout)
        planned = plan.manifest()
        with Journal(layout.journal_path) as journal:
            settle(layout, journal, {info.fingerprint for info in planned.shards.values()})
            if missing := all_not_done(layout, planned, journal):
                raise _unfinished(layout, planned, missing)
            manifest = filled(planned, journal)
            manifest.save(layout.manifest_path)
            take_in_parts(layout, journal)
            plan.remove_other_rows(layout)
        progress.note(f"{number_of(len(manifest.shards), 'shard')}, all done: see {layout.manifest_path}")
    return _summary(manifest)


def _finished_before(layout: Layout) -> MergeSummary:
    manifest = load_manifest(layout.manifest_path)
    if manifest is None:
        raise InputError(
            f"no rank has started a set in {layout.output_dir}",
            f"expected {layout.plan_path}, which the first rank of a job array writes",
            "run imagenet-prep convert with --rank first; without --rank, no merge is needed",
        )
    return _summary(manifest)


def _unfinished(layout: Layout, planned: Manifest, missing: list[str]) -> InputError:
    found = ranks_of(set(missing), planned.shards, layout.rank_parts())
    hint = "run them again, or the same imagenet-prep convert without --rank: finished shards are kept"
    detail = "expected all shards"
    if found is not None:
        ranks, world = found
        detail = f"they belong to {'ranks' if len(ranks) > 1 else 'rank'} {listed(map(str, ranks), 20)} of {world}"
    of = number_of(len(planned.shards), "shard is", "shards are")
    return InputError(f"{len(missing):,} of {of} not done, {missing[0]} first", detail, hint)


def _summary(manifest: Manifest) -> MergeSummary:
    totals = manifest.totals
    set_aside = dict.fromkeys(totals, 0)
    for info in manifest.shards.values():
        if info.set_aside and (parsed := parse_shard_name(info.name)):
            set_aside[parsed[0]] += len(info.set_aside)
    return MergeSummary(
        {each: totals[each].shards for each in totals}, {each: totals[each].images for each in totals}, set_aside
    )
