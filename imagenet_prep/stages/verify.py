"""verify: reads every byte of shards, and gives a Verdict:
how complete they are, or exactly what is wrong.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import CheckedDataset, SetFindings
from imagenet_prep.checks.checked_shards import Checked, failed_check, fingerprint, group
from imagenet_prep.checks.inventory import Inventory, take_inventory
from imagenet_prep.checks.other_sets import join_other_set
from imagenet_prep.checks.set_checks import (
    check_counts,
    check_names,
    check_plan,
    check_sizes,
    check_state,
    remedy_own,
)
from imagenet_prep.checks.shard_check import ShardCheck, ShardReport
from imagenet_prep.checks.verdict import Depth, Level, SplitReport, Verdict, level_of, save_verdict
from imagenet_prep.errors import (
    AccessError,
    InputError,
    NetworkError,
    SpaceError,
    UsageError,
    WorkerError,
    WriteError,
)
from imagenet_prep.hints import Hint, as_text
from imagenet_prep.images.prepare import repaired_images
from imagenet_prep.model import Engine, Failed, Problem, ProblemKind, Progress, Silent
from imagenet_prep.reading.shard import Shard
from imagenet_prep.registry import known_file, known_set
from imagenet_prep.shards.share import Share
from imagenet_prep.state.manifest import count_changed_boxes, has_copies
from imagenet_prep.state.set_state import SetState, StateKind, merge_command
from imagenet_prep.storage.files import atomic_file
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.lock import find_holder
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.compression import Compression


def verify(
    layout: Layout,
    engine: Engine,
    *,
    depth: Depth = "full",
    allow_incomplete: bool = False,
    share: Share | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Check every shard, and the set as a whole.

    "quick" checks only names, sizes and indexes; "full" reads every byte; "decode" also decodes
    every image. ``allow_incomplete`` treats shards without a manifest as a part of ILSVRC2012. The
    findings are kept in ``layout.problems_path`` and ``layout.verdict_path``; no other file is
    written. With a ``share`` only its shards are checked, not the whole set, and its findings are
    kept in separate files.

    Raises:
        InputError: there are no shards.
    """
    progress = progress or Silent()
    layout = layout.one_set()
    if holder := find_holder(layout.lock_paths):
        progress.note(
            f"another run is working with these folders ({holder}): shards that are not made "
            "yet count as missing; verify again when it has ended"
        )
    check, problems = _begin(layout, depth, share, allow_incomplete=allow_incomplete)
    checked: Checked | None = None
    if depth == "quick":
        findings = check.look()
    else:
        checked, findings = check.read(engine, progress)
    verdict = check.conclude(problems, checked, findings)
    notes = _keep(verdict, layout, share)
    return replace(verdict, notes=(*verdict.notes, *notes))


def look(layout: Layout) -> Verdict:
    """The quick verdict of a set; nothing is written."""
    layout = layout.one_set()
    check, problems = _begin(layout, "quick", None, allow_incomplete=False)
    findings = check.look()
    return check.conclude(problems, None, findings)


def _begin(
    layout: Layout, depth: Depth, share: Share | None, *, allow_incomplete: bool
) -> tuple[_SetCheck, list[Problem]]:
    """The check of a set, or of a share of it, and the problems of its
    manifest and the names of its files.
    """
    state = SetState.read(layout)
    problems: list[Problem] = []
    if state.damage:
        problems.append(state.damage)
    manifest_of_plan = state.manifest if state.covers_plan else None
    dataset = known_set(state.records, manifest_of_plan)
    inventory = take_inventory(state, dataset)
    if share:
        inventory = _restricted(inventory, share)
    manifest = inventory.manifest
    if manifest:
        problems += check_plan(state, manifest)
        problems += check_counts(manifest, dataset.published)
    problems += check_names(inventory)
    if not share:
        problems += check_state(state)
    is_part = dataset.is_part or (manifest is None and allow_incomplete)
    return _SetCheck(layout, dataset, inventory, depth, share, is_part), problems


_UNSAVED = "the result of this check was not saved"

_QUICK = "a quick check found nothing wrong. It did not read the content of the shards."


class _SetCheck(Struct, frozen=True):
    """Checks the shards of an inventory, or of a share of it."""

    layout: Layout
    dataset: CheckedDataset
    inventory: Inventory
    depth: Depth
    share: Share | None
    is_part: bool

    def look(self) -> SetFindings:
        """The findings without reading a shard."""
        problems = [*check_sizes(self.inventory, self.layout)]
        if not self.share:
            problems += _missing_splits(self.inventory, self.is_part)
        return SetFindings(tuple(problems))

    def read(self, engine: Engine, progress: Progress) -> tuple[Checked, SetFindings]:
        """The reports of all shards, and the findings in them."""
        inventory, layout = self.inventory, self.layout
        foreign_shards = []
        if not inventory.infos:
            foreign_shards = [layout.shard_path(name) for name in inventory.present]
        examiner = self.dataset.examiner(foreign_shards, decode=self.depth == "decode")
        check = ShardCheck(
            layout,
            examiner,
            inventory.infos,
            remedy_own(inventory.state),
            _compression(inventory),
            self.dataset.compares_records,
        )
        checked, problems = _check_shards(inventory, check, engine, progress)
        if self.share:
            for report in checked.reports.values():
                problems += report.problems
            return checked, SetFindings(tuple(problems))
        findings = self.dataset.check_set(inventory, checked, examiner, is_part=self.is_part)
        problems += findings.problems
        return checked, replace(findings, problems=tuple(problems))

    def conclude(
        self, problems: Sequence[Problem], checked: Checked | None, findings: SetFindings
    ) -> Verdict:
        """The verdict, from these problems of the folder and the findings in its shards."""
        problems = [*problems, *findings.problems]
        inventory = self.inventory
        names = inventory.expected
        totals = _totals(inventory, checked)
        claim = self.dataset.claim(inventory, totals, findings, is_part=self.is_part)
        state, reason = self._state()
        problem_kinds = {problem.kind for problem in problems}
        level = level_of(claim.level, problem_kinds, state, self.depth)
        if not reason and not problems:
            reason = claim.reason
            if self.depth == "quick" and level != "incomplete":
                reason = _QUICK
        digest = ""
        if checked and not self.share:
            digest = fingerprint(checked.reports, names)
        shown = problems
        if checked and not self.share:
            shown = join_other_set(problems, checked.of(names), inventory.state)
        warned = itertools.chain.from_iterable(info.warned for info in inventory.infos.values())
        return Verdict(
            depth=self.depth,
            problems=tuple(group(shown)),
            totals=totals,
            level=level,
            reason=reason,
            has_manifest=inventory.manifest is not None,
            counts=_counts(inventory),
            notes=(*self._notes(), *findings.notes),
            flavour=findings.flavour,
            differences=findings.differences,
            order=findings.order,
            fingerprint=digest,
            faulty=_faulty_shards(names, problems),
            dataset=self.dataset.name,
            warned=tuple(warned),
        )

    def _state(self) -> tuple[StateKind, str]:
        """The state of the folder, and its reason;
        "" for a finished set, and for shards of another program.
        """
        if self.share:
            return "part", f"{self.share}, not the whole set."
        state = self.inventory.state
        reasons = {
            "part": "ranks made these shards, which are not merged.",
            "unfinished": f"{self._done}.",
            "replacing": "shards of an older set are not removed yet.",
        }
        return state.kind, reasons.get(state.kind, "")

    @property
    def _done(self) -> str:
        state = self.inventory.state
        total = len(self.inventory.expected)
        if state.plan:
            total = len(state.plan.fingerprints_by_name())
        done = f"{total - len(state.missing):,} of {number_of(total, 'shard')} done"
        if state.kind == "unfinished" and not state.missing:
            return f"{done}, but {state.fault_of_manifest}"
        return done

    def _notes(self) -> Iterator[str]:
        """Notes about an unfinished set, the data set, images that were set aside, and ranks."""
        inventory = self.inventory
        is_of_ranks = inventory.state.kind == "part"
        has_strays = inventory.state.kind == "contradictory"  # convert refuses them
        if inventory.is_unfinished and not is_of_ranks and not has_strays:
            resume = self.dataset.following(
                inventory.state.records, {"convert": "partly", "annotate": "done"}
            )
            yield Hint(f"this conversion is not finished ({self._done}); to resume: ", resume)
        yield from self.dataset.notes(inventory, is_part=self.is_part)
        if inventory.manifest and has_copies(inventory.manifest.sources):
            yield "made from several copies of the images, which were compared by sample"
        yield from _note_images_set_aside(inventory)
        if is_of_ranks:
            merge = merge_command(self.layout)
            yield Hint(
                "ranks make these shards; to finish the set, or to list the missing ranks: ",
                merge,
            )
        yield from _note_foreign_splits(inventory.state)
        if self.share:
            yield (
                f"{self.share}: only its shards; missing and duplicate images, "
                "totals and order show in the whole set"
            )


def _faulty_shards(
    names: Sequence[str], problems: Sequence[Problem]
) -> dict[str, tuple[ProblemKind, ...]]:
    """The kinds of problems of each shard that has any."""
    kinds: defaultdict[str, set[ProblemKind]] = defaultdict(set)
    for problem in problems:
        kinds[problem.subject].add(problem.kind)
    return {name: tuple(sorted(kinds[name])) for name in names if name in kinds}


def _note_images_set_aside(inventory: Inventory) -> Iterator[str]:
    images: list[str] = []
    for name in inventory.expected:
        if name in inventory.infos:
            images += inventory.infos[name].set_aside
    if images:
        count = number_of(len(images), "image was", "images were")
        yield f"{count} set aside: {listed(images)}"


def _note_foreign_splits(state: SetState) -> Iterator[str]:
    if state.orphans and not state.has_prefixes:
        shards = number_of(len(state.orphans), "shard")
        splits = dict.fromkeys(split_of(name) for name in state.orphans)
        yield f"{shards} of {listed(splits)} skipped: this set has no such split"


def verify_file(path: AnyPath, *, depth: Depth = "full") -> Verdict:
    """Check one file: a shard of a set as verify does; any other by framing, checksums and the form
    of its Examples.

    Raises:
        UsageError: a quick check is asked for, which is one of a whole set.
        InputError: it is a file of another kind.
    """
    if depth == "quick":
        problem = f"--depth quick checks a whole set, and {path} is one file"
        raise UsageError(problem, "expected the folder of a set", "leave --depth out")
    layout, dataset, manifest = known_file(path)
    info = manifest.shards.get(path.name)
    examiner = dataset.examiner((), decode=depth == "decode")
    remedy = ""
    claimed: Level = "foreign"
    reason = f"the records of {path.name} are intact. Nothing tells how many there should be."
    if info:
        remedy = remedy_own(SetState.read(layout))
        claimed = "part"
        reason = f"{path.name} is intact, one shard of {dataset.name}."
    check = ShardCheck(layout, examiner, manifest.shards, remedy, lists_records=False)
    report = check(path.name)
    if report.problems:
        reason = ""
        if not info and not report.records:
            _refuse_other_kind(path)
    problem_kinds = {problem.kind for problem in report.problems}
    total = SplitReport(
        split_of(path.name) or path.name,
        shards=1,
        records=report.records,
        expected=info.records if info else report.records,
        classes=len(report.labels),
        boxes=report.boxes,
        bytes=path.stat().st_size,
    )
    return Verdict(
        depth=depth,
        problems=tuple(group(report.problems)),
        totals=(total,),
        level=level_of(claimed, problem_kinds),
        reason=reason,
        has_manifest=info is not None,
        flavour="recipe",
        fingerprint=fingerprint({path.name: report}, [path.name]),
        dataset=dataset.name,
    )


def _refuse_other_kind(path: AnyPath) -> None:
    """Raise InputError for a file that is not damaged, but of another kind."""
    try:
        shard = Shard.open(path)
    except (InputError, OSError):  # the report says why it can't be read
        return
    shard.refuse_other_kind()


# every byte ---------------------------------------------------------------------------------------


def _check_shards(
    inventory: Inventory, check: ShardCheck, engine: Engine, progress: Progress
) -> tuple[Checked, list[Problem]]:
    """The findings of every shard; a shard whose check failed is a Problem."""
    checked = Checked()
    failures: list[Problem] = []
    total_bytes = sum(inventory.sizes[name] for name in inventory.present)
    progress.begin("verify", total_bytes, "B")
    for outcome in engine.map(check, inventory.present):
        if isinstance(outcome, Failed):
            if isinstance(outcome.error, WorkerError):
                raise outcome.error
            failures.append(failed_check(outcome.task, outcome.error))
        else:
            checked.add(outcome.task, outcome.value)
        progress.advance(inventory.sizes[outcome.task])
    progress.end()
    return checked, failures


def _compression(inventory: Inventory) -> Compression | None:
    """The compression of all shards, if the manifest records it."""
    if inventory.manifest is None:
        return None
    compression: Compression | None = inventory.manifest.settings.get("compression")
    if compression in ("none", "gzip", "zlib"):
        return compression
    return None


# the set as a whole -------------------------------------------------------------------------------


def _restricted(inventory: Inventory, share: Share) -> Inventory:
    """The shards of a rank; the first rank also checks files that are no shards of the set."""
    in_share = set(share.of(inventory.expected))
    shards = {}
    for split, names in inventory.shards.items():
        shards[split] = [name for name in names if name in in_share]
    file_names = set(in_share)
    if share.rank == 0:
        file_names |= inventory.sizes.keys() - set(inventory.expected)
    sizes = {name: size for name, size in inventory.sizes.items() if name in file_names}
    return replace(inventory, shards=shards, sizes=sizes)


def _missing_splits(inventory: Inventory, is_part: bool) -> list[Problem]:
    """Splits without a single shard, if nothing records how many there should be."""
    if is_part or inventory.manifest is not None:
        return []
    remedy = "get its shards; if the set is meant to be a part, run verify with --allow-incomplete"
    detail = "all its shards are missing"
    problems = []
    for split in inventory.splits:
        if not inventory.of(split):
            problem = Problem(ProblemKind.MISSING_SHARD, split, detail, remedy)
            problems.append(problem)
    return problems


def _totals(inventory: Inventory, checked: Checked | None) -> tuple[SplitReport, ...]:
    """The totals of each split, as found; without ``checked``,
    those that manifest and sizes tell.
    """
    return tuple(_total(split, inventory, checked) for split in inventory.splits)


def _total(split: str, inventory: Inventory, checked: Checked | None) -> SplitReport:
    present = checked.reports if checked else inventory.sizes
    names = [name for name in inventory.of(split) if name in present]
    size = sum(inventory.sizes[name] for name in names)
    total = SplitReport(split, len(names), None, inventory.images[split], None, None, size)
    if checked:
        class_count = len(checked.labels[split])
        return _checked_total(total, checked.of(names), class_count)
    if inventory.manifest is None:
        return total
    recorded = inventory.manifest.totals.get(split)
    if recorded is None:
        return total
    records = sum(inventory.infos[name].records for name in names)
    return replace(total, records=records, classes=recorded.classes, boxes=recorded.boxes)


def _checked_total(
    total: SplitReport, reports: Sequence[ShardReport], class_count: int
) -> SplitReport:
    """The totals of a split whose shards were read."""
    records = sum(report.records for report in reports)
    boxes = sum(report.boxes for report in reports)
    return replace(total, records=records, classes=class_count, boxes=boxes)


def _counts(inventory: Inventory) -> dict[str, int]:
    """The numbers of images set aside, repaired and warned of, of files skipped, of boxes changed;
    those above 0.
    """
    sources = inventory.manifest.sources.values() if inventory.manifest else ()
    counts = {"set aside": 0, "repaired": 0, "warned": 0, "skipped": 0}
    for info in inventory.infos.values():
        repaired = repaired_images(info.repairs)
        counts["set aside"] += len(info.set_aside)
        counts["repaired"] += len(repaired)
        counts["warned"] += len(info.warned)
    for source in sources:
        if isinstance(source, dict):
            counts["skipped"] += source.get("skipped", 0)
    for outcome, images in count_changed_boxes(sources).items():
        counts[f"boxes {outcome}"] = images.total()
    return {name: count for name, count in counts.items() if count}


def _keep(verdict: Verdict, layout: Layout, share: Share | None) -> list[str]:
    """Keep the findings for other commands;
    a folder that can't be written to only causes a note.
    """
    share_name = share.name if share else ""
    path = layout.found_by(share_name)[0]
    try:
        if share is None:
            for part in layout.found_by_ranks():
                part.unlink(missing_ok=True)
        if verdict.problems:
            with atomic_file(path) as file:
                for problem in to_builtins(verdict.problems, enc_hook=as_text):
                    line = json.dumps(problem) + "\n"
                    file.write(line.encode())
        else:
            path.unlink(missing_ok=True)
        save_verdict(verdict, layout, share_name)
    except OSError as error:
        return [f"{_UNSAVED} in {path.parent}: {error.strerror or error}"]
    except SpaceError as error:
        return [f"{_UNSAVED}: {error.what}"]
    except AccessError:
        return [f"{_UNSAVED} in {path.parent}: your credentials may only read there"]
    except (WriteError, InputError, NetworkError) as error:
        return [f"{_UNSAVED} in {path.parent}: {error.detail}"]
    return []
