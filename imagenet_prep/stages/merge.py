"""Merges the work of ranks into one finished set; reads no raw data and makes no shard."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from imagenet_prep.datasets.stored_plan import planned_manifest
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Progress, Silent
from imagenet_prep.registry import known_set, refuse_images
from imagenet_prep.shards.convert_summary import ConvertSummary, SplitSummary
from imagenet_prep.shards.finishing import finish_set
from imagenet_prep.shards.share import ranks_of
from imagenet_prep.shards.unfinished import remove_unfinished_state
from imagenet_prep.state.damaged_images import save_damaged_images
from imagenet_prep.state.indexes import not_done, settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.replacement import Replacement
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.lock import hold
from imagenet_prep.text import listed, number_of


def merge(layout: Layout, *, progress: Progress | None = None) -> ConvertSummary:
    """Finish a set whose shards the ranks of ``convert`` made; it reads no raw data and makes no
    shard.

    The remains of killed ranks are removed, and the records of all ranks become one. A finished set
    stays unchanged; its list of damaged images is written again if it is not there.

    Raises:
        InputError: no rank has made anything there; or shards are missing: the error names the
            ranks to run again.
        BusyError, SpaceError, WriteError: another run works here, no space is left, or the storage
            fails.
    """
    progress = progress or Silent()
    layout = layout.one_set()
    with hold(layout.lock_paths):
        remove_unfinished_state(layout)
        state = SetState.read(layout)
        if state.kind == "finished" and state.manifest is not None and not layout.rank_parts():
            _refuse_damaged(state.manifest, layout)
            if state.manifest.has_set_aside and not layout.damaged_images_path.exists():
                save_damaged_images(layout, state.manifest)
            return _summary(state.manifest, layout)
        if state.plan is None:
            raise _nothing_to_merge(state)
        manifest = _merge(state.plan, state)
        progress.note(
            f"{number_of(len(manifest.shards), 'shard')}, all done: see {layout.manifest_path}"
        )
    return _summary(manifest, layout)


def _merge(plan: Plan, state: SetState) -> Manifest:
    """Finish a planned set; first what a killed --overwrite left,
    if it did and all new shards are done.
    """
    layout = state.layout
    planned = planned_manifest(plan)
    if replacement := Replacement.find(layout, plan):
        if state.missing:
            raise _unfinished(state, planned, state.missing)
        replacement.finish(layout, plan, is_locked=True)
    with Journal(layout.journal_path) as journal:
        settle(layout, journal, {info.fingerprint for info in planned.shards.values()})
        _take_from_manifest(state.records, planned, journal)
        if missing := not_done(layout, planned, journal):
            if state.kind == "contradictory" and state.manifest is not None:
                raise InputError(state.sentence, "expected all shards", state.following)
            raise _unfinished(state, planned, missing)
        return finish_set(plan, layout, journal, refuse_images)


def _take_from_manifest(records: SetRecords, planned: Manifest, journal: Journal) -> None:
    """Choose the manifest's entry of a planned shard that no journal lists."""
    manifest = records.usable_manifest
    if manifest is None:
        return
    for name, info in manifest.shards.items():
        if journal.get(name) is None and name in planned.shards:
            journal.choose(info)


def _refuse_damaged(manifest: Manifest, layout: Layout) -> None:
    """Raise InputError if a shard of a finished set is not as its manifest says:
    index and last record are compared.
    """
    damaged = not_done(layout, manifest, manifest.shards)
    if damaged:
        count = number_of(len(damaged), "shard differs", "shards differ")
        raise InputError(
            f"{count} from {layout.manifest_path}, {damaged[0]} first",
            "expected the index and the last record of each shard as this manifest lists them",
            Hint("to see each fault: ", command("verify", layout.output_dir)),
        )


def _nothing_to_merge(state: SetState) -> InputError:
    layout = state.layout
    if state.kind in ("nothing", "foreign"):
        return InputError(
            f"nothing to merge in {layout.output_dir}",
            f"expected {layout.plan_path}, which the first rank of a job array writes",
            Hint(
                "run ", mention("convert"), " with --rank first; without --rank, no merge is needed"
            ),
        )
    if state.kind == "finished":
        return InputError(
            f"{layout.output_dir} holds a finished set: there is nothing to merge",
            f"expected an unfinished set with a usable plan: {layout.plan_path}",
            Hint("to check the finished set: ", command("verify", layout.output_dir)),
        )
    expected = f"expected {layout.plan_path} as convert wrote it"
    return InputError(state.sentence, expected, state.following)


def _unfinished(state: SetState, planned: Manifest, missing: Sequence[str]) -> InputError:
    """The error for shards that are not done; it names their ranks, and the command that makes
    them without ranks.
    """
    layout = state.layout
    detail, advice = "expected all shards", "to make what is missing: "
    ranks_of_job = ranks_of(set(missing), planned.shards, layout.rank_parts())
    if ranks_of_job is not None:
        ranks, world = ranks_of_job
        numbers = listed(map(str, ranks), 20)
        noun, these = ("ranks", "these ranks") if len(ranks) > 1 else ("rank", "this rank")
        detail = f"expected all shards: these are the shards of {noun} {numbers} (of {world})"
        advice = f"run {these} again; or make what is missing without ranks: "
    verb = "is" if len(missing) == 1 else "are"
    shards = number_of(len(planned.shards), "shard")
    convert = known_set(state.records, planned).following(
        state.records, {"convert": "partly", "annotate": "done"}
    )
    return InputError(
        f"{len(missing):,} of {shards} {verb} not done, {missing[0]} first",
        detail,
        Hint(advice, convert),
    )


def _summary(manifest: Manifest, layout: Layout) -> ConvertSummary:
    set_aside = Counter[str]()
    size = Counter[str]()
    repairs: defaultdict[str, list[str]] = defaultdict(list)
    warned: defaultdict[str, list[str]] = defaultdict(list)
    for name, info in manifest.shards.items():
        split = split_of(name)
        set_aside[split] += len(info.set_aside)
        size[split] += info.size
        repairs[split] += info.repairs
        warned[split] += info.warned
    splits = []
    for split, total in manifest.totals.items():
        repairs_in_order = sorted(repairs[split])
        warned_in_order = sorted(warned[split])
        summary = SplitSummary(
            split,
            total.images,
            total.shards,
            made=0,
            set_aside=set_aside[split],
            repairs=tuple(repairs_in_order),
            warned=tuple(warned_in_order),
            size=size[split],
        )
        splits.append(summary)
    return ConvertSummary(tuple(splits), (), (), layout.damaged_images_path)
