"""The Verdict of verify: printed, saved as JSON, kept in DATA_DIR,
and loaded by report and status.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Literal

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.hints import SavedParts, as_text, has_command, load_parts, save_parts
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.state.set_state import StateKind
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import listed, number_of

SCHEMA = 1

_FEW_MISSING = 3
"""Missing shards beyond this number are not listed one by one."""

Depth = Literal["quick", "full", "decode"]


class SplitReport(Struct, frozen=True):
    """The totals of one split: ``shards`` files of ``bytes`` bytes in total, ``records`` of
    ``expected`` images.

    ``records``, ``classes`` and ``boxes`` are None after a quick check, which can't count them.
    """

    split: str
    shards: int
    records: int | None
    expected: int
    classes: int | None
    boxes: int | None
    bytes: int


Level = Literal[
    "official", "complete", "as listed", "part", "unfinished", "incomplete", "damaged", "foreign"
]
"""The word of a verdict; ``level_of`` chooses it, docs/verify.md describes each."""

RIGHT = ("official", "complete")
"""The levels of sets that are whole and right."""

_LACKS = {
    ProblemKind.MISSING_SHARD,
    ProblemKind.MISSING_IMAGE,
    ProblemKind.MISSING_CLASS,
    ProblemKind.MISSING_BOX,
    ProblemKind.UNFINISHED,
}
"""Problems of a set that lacks something, while all that it holds is sound."""


class ReasonedLevel(Struct, frozen=True):
    """The level of a set whose shards are sound, and the reason for it:
    a sentence without its first capital.
    """

    level: Level
    reason: str


def level_of(
    claimed: Level,
    problems: Collection[ProblemKind],
    state: StateKind = "finished",
    depth: Depth = "full",
) -> Level:
    """The level of a set, from the level that it claims if its shards are sound,
    and the kinds of its problems.
    """
    if not _LACKS.issuperset(problems) or (state == "contradictory" and not problems):
        return "damaged"
    if state == "part":
        return "part"
    if state in ("unfinished", "replacing"):
        return "unfinished"
    if problems:
        return "incomplete"
    return "as listed" if depth == "quick" and claimed in RIGHT else claimed


_NOT_READ = "not read the content"


def conclusion_of(level: Level, reason: str, count: int, unread: str = "") -> str:
    """A level, the reason for it, and the number of problems, in a line.

    ``unread``: what a quick check did not read.
    """
    sentences = [reason] if reason else []
    if count:
        sentences.append("1 problem found." if count == 1 else f"{count:,} problems found.")
    if unread and _NOT_READ not in reason:
        sentences.append(f"A quick check does {_NOT_READ} of the {unread}.")
    return f"{level}: {' '.join(sentences)}"


def remarks_of(counts: Mapping[str, int]) -> str:
    """Counts in a line; "" if there are none."""
    remarks: list[str] = []
    for name, count in counts.items():
        if name.startswith("boxes"):
            remarks.append(f"{name}: {count:,}")
        else:
            noun = "file" if name == "skipped" else "image"
            remarks.append(f"{name}: {number_of(count, noun)}")
    return ", ".join(remarks)


def as_json(verdict: Struct) -> dict[str, Any]:
    """A Verdict or a RawVerdict as JSON-ready values:
    the schema and the level first, the totals by split.
    """
    fields = to_builtins(verdict, enc_hook=as_text)
    totals = {total["split"]: total for total in fields["totals"]}
    return {"schema": SCHEMA, "verdict": fields["verdict"], **fields, "totals": totals}


class Verdict(Struct, frozen=True):
    """The result of verify.

    Args:
        depth: how thorough the check was.
        problems: every finding; thousands with one cause are the first few and a count.
        totals: one per split.
        level: how complete and sound the set is, in a word.
        reason: why, as a sentence without its first capital; "" if the problems say it.
        has_manifest: if not, the shards were compared with all of ILSVRC2012.
        counts: the number of images "set aside", "repaired" and "warned", of files "skipped", and
            of "boxes clipped" and "boxes dropped" by a recipe; without those that are 0.
        notes: remarks that are not problems.
        flavour: the tool that makes records like these; "" after a quick check.
        differences: how the records differ from that flavour, within its guarantees.
        order: "canonical", "the records of 2016 in another order", "not canonical", or "unknown".
        fingerprint: SHA-256 (hex) over the names, record counts and digests of all shards; "" after
            a quick check.
        faulty: every shard that is missing or has a problem of its own, with the kinds of its
            problems.
        dataset: its name.
        warned: images that are unusual though their pixels are whole, with the warning; as in
            ShardInfo.
    """

    depth: Depth
    problems: tuple[Problem, ...]
    totals: tuple[SplitReport, ...]
    level: Level = field(name="verdict")
    reason: str
    has_manifest: bool = field(name="manifest")
    counts: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    flavour: str = ""
    differences: tuple[str, ...] = ()
    order: str = "unknown"
    fingerprint: str = ""
    faulty: Mapping[str, tuple[ProblemKind, ...]] = {}
    dataset: str = "ILSVRC2012"
    warned: tuple[str, ...] = ()

    @property
    def conclusion(self) -> str:
        """The level and the reason for it, in a line."""
        unread = "shards" if self.depth == "quick" else ""
        return conclusion_of(self.level, self.reason, len(self.shown_problems), unread)

    @property
    def remarks(self) -> str:
        """The line below the conclusion: images that were left out or changed;
        "" if there are none.
        """
        return remarks_of(self.counts)

    @property
    def shown_problems(self) -> tuple[Problem, ...]:
        """The problems to print: many missing shards become a count and the first names."""
        missing = [
            name for name, kinds in self.faulty.items() if ProblemKind.MISSING_SHARD in kinds
        ]
        problems_of_missing = [problem for problem in self.problems if self._is_of_missing(problem)]
        if len(missing) <= _FEW_MISSING or not problems_of_missing:
            return self.problems
        counted = replace(
            problems_of_missing[0],
            subject=number_of(len(missing), "shard"),
            detail=listed(missing),
            count=len(missing),
        )
        shown = [problem for problem in self.problems if problem not in problems_of_missing]
        return (counted, *shown)

    def _is_of_missing(self, problem: Problem) -> bool:
        """Whether a problem is a missing shard, or stands in for several that are not listed:
        see ``checks.checked_shards.group``.
        """
        if problem.kind is not ProblemKind.MISSING_SHARD:
            return False
        return problem.count > 1 or problem.subject in self.faulty

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready values."""
        return as_json(self)


# kept in DATA_DIR ---------------------------------------------------------------------------------


def save_verdict(verdict: Verdict, layout: Layout, part: str = "") -> None:
    """Keep a verdict, and the state of the files it covers, for status and report;
    ``part`` names a rank's.
    """
    value = {
        **verdict.as_dict(),
        "files": _signature(layout, verdict),
        "hints": _save_hints(verdict),
    }
    save_json(layout.found_by(part)[1], value)


def _save_hints(verdict: Verdict) -> dict[str, SavedParts]:
    """The parts of each remedy and note that has a command, by its text."""
    remedies = [problem.remedy for problem in verdict.problems]
    texts = (*remedies, *verdict.notes)
    return {str(text): save_parts(text) for text in texts if has_command(text)}


def _with_hints(verdict: Verdict, saved: Mapping[str, SavedParts]) -> Verdict:
    """A verdict from JSON with its hints as data again."""
    hints = {text: load_parts(parts) for text, parts in saved.items()}
    problems = []
    for problem in verdict.problems:
        problems.append(replace(problem, remedy=hints.get(problem.remedy, problem.remedy)))
    notes = tuple(hints.get(note, note) for note in verdict.notes)
    return replace(verdict, problems=tuple(problems), notes=notes)


class KeptVerdict(Struct, frozen=True):
    """The last verdict; ``is_current``: no shard has changed since."""

    verdict: Verdict
    is_current: bool


def load_verdict(layout: Layout) -> KeptVerdict | None:
    """The verdict of the last verify; None if none can be read."""
    if not layout.verdict_path.exists():
        return None
    try:
        fields = load_json(layout.verdict_path)
        if fields["schema"] != SCHEMA:
            return None
        split_reports = [*fields["totals"].values()]  # as_json gives them by split
        verdict = convert({**fields, "totals": split_reports}, Verdict)
        saved_hints = convert(fields.get("hints", {}), dict[str, SavedParts])
        verdict = _with_hints(verdict, saved_hints)
        is_current = fields["files"] == _signature(layout, verdict)
        return KeptVerdict(verdict, is_current)
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _signature(layout: Layout, verdict: Verdict) -> str:
    """A digest over name, size and time of shards, indexes and manifest:
    it changes when any of them changes.
    """
    digest = hashlib.sha256()
    shards = layout.find_shards({total.split for total in verdict.totals})
    indexes = (path for name in shards for path in layout.index_paths(name))
    for path in (*map(layout.shard_path, shards), *indexes, layout.manifest_path):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
