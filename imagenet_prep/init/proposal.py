"""Interpretation: a folder as a structure reads it, with the Proposal of a recipe,
or the Alternatives that a user must choose from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.split_lists import SplitLists
from imagenet_prep.recipes.columns import Content

CERTAIN, LIKELY, POSSIBLE, ONLY_IF_ASKED = 3, 2, 1, 0
"""How sure a structure is. The surest one is taken; two of the same are a choice."""


class Proposal(Struct, frozen=True):
    """The content of a recipe. Paths start at the folder of the data.

    Args:
        kind: the key of the recipe's source.
        content: what the files are.
        names: the files that count, by their paths from ``lead``.
        lead: the folders that lead to them all, with a slash; or "".
        paths: the tars, or the files of a source with labels of its own, by split ("": of none).
        splits: the given ones, by folder.
        lists: the files that name those of each split, by split.
        places: the recipe's ``splits``, where the folders don't say them by themselves.
        classes: the recipe's ``classes``, where it must name them.
        divided: the splits that the annotations themselves name.
        written_lists: the files of each split, from ``lead``, where no file lists them: init writes
            the lists.
        written_labels: the class of each file, from ``lead``, where no file says it: init writes
            the table.
        several: what is between the classes of a file there, if it can have several.
        table: a labels file, or the labels that are in the source itself.
        annotations: the value of the recipe's key "boxes" or "mask".
        clips_boxes: whether the recipe says ``boxes_outside: clip``.
        options: what a recipe must say of the source, except where it is.
        remarks: what a reader of the recipe must know of the source, a line each.
        first_label: the number of the first class, if the format of the source says it.
        in_named_folders: whether the recipe must name each folder of files: others are between.
        absent: by list of splits or of classes the files that it names and that are not there.
    """

    kind: str
    content: Content
    names: Sequence[str]
    lead: str = ""
    paths: Mapping[str, Sequence[str]] = {}
    splits: Mapping[str, str] = {}
    lists: Mapping[str, str] = {}
    places: Mapping[str, Mapping[str, Any]] = {}
    classes: Sequence[str] = ()
    divided: Sequence[str] = ()
    written_lists: Mapping[str, Sequence[str]] = {}
    written_labels: Mapping[str, str] = {}
    several: str = ""
    table: LabelsFile | None = None
    annotations: Mapping[str, Mapping[str, Any]] = {}
    clips_boxes: bool = False
    options: Mapping[str, str | bool] = {}
    remarks: Sequence[str] = ()
    first_label: int | None = None
    in_named_folders: bool = False
    absent: Mapping[str, Sequence[str]] = {}

    @property
    def split_names(self) -> list[str]:
        """The splits that the recipe has, by folders, lists, files or the values of a column;
        none: of shares.
        """
        splits = [
            *self.places,
            *self.splits.values(),
            *self.lists,
            *self.written_lists,
            *self.divided,
            *filter(None, self.paths),
        ]
        if self.table is not None:
            splits += self.table.split_names
        return list(dict.fromkeys(splits))

    def divide(self, lists: SplitLists) -> Proposal:
        """The same files, divided by lists: the recipe names them, or those that init writes."""
        proposal = replace(self, names=lists.names, splits={}, absent=lists.absent)
        if lists.is_plain:
            return replace(proposal, lists=lists.files)
        return replace(proposal, written_lists=lists.divided)


class Alternative(Struct, frozen=True):
    """A way to read a folder that can be chosen, and the options that choose it.

    Args:
        labelled: how many images it gives a class.
        classes: how many classes there are then.
        options: the options of init.
        total: how many images there are, if files are not images.
        reads: what it makes records of, as text, if it gives no class; "": images alone.
    """

    labelled: int
    classes: int
    options: Mapping[str, object]
    total: int = 0
    reads: str = ""


class DoubtError(InputError):
    """A fault that a user may accept, and that leaves nothing out.

    Attributes:
        aim: what the recipe does then, as a verb.
        outcome: what it did, for a note.
    """

    aim: str
    outcome: str

    @classmethod
    def of(cls, aim: str, outcome: str, *lines: str) -> DoubtError:
        """The doubt whose what, detail and hint are ``lines``."""
        error = cls(*lines)
        error.aim, error.outcome = aim, outcome
        return error


class Interpretation(Struct, frozen=True):
    """A folder as one structure reads it.

    Args:
        certainty: CERTAIN, LIKELY, POSSIBLE or ONLY_IF_ASKED.
        evidence: what speaks for it, a line each.
        meaning: what the records are then, in a few words, for a choice.
        proposal: the recipe; None with faults only.
        faults: what keeps it from being taken, even if it is asked for.
        containers: the files that it takes, such as tars, if those are not all images or arrays.
        annotation_files: the files of annotations that it takes; None if it takes none.
        is_labelled: whether its images have classes: a file that may have others is no loss then.
        losses: files that it leaves out and that would be missed; and its doubts, such as
            impossible boxes, which the recipe clips or drops.
        skip_notes: the other files that it leaves out, and why, as text.
        labelled: how many images it gives a class.
        classes: how many classes it gives.
        total: how many images there are, if some of the files are masks.
        alternatives: what a user must choose from, if the structure alone does not decide; two at
            least.
        options: the options of init that take it; {}: its structure.
        list_files: the files that divide its images.
    """

    certainty: int
    evidence: tuple[str, ...]
    meaning: str
    proposal: Proposal | None = None
    faults: Sequence[InputError] = ()
    containers: Sequence[str] = ()
    annotation_files: Collection[str] | None = None
    is_labelled: bool = True
    losses: Sequence[InputError] = ()
    skip_notes: Sequence[str] = ()
    labelled: int = 0
    classes: int = 0
    total: int = 0
    alternatives: Sequence[Alternative] = ()
    options: Mapping[str, object] = {}
    list_files: Collection[str] = ()

    @property
    def table(self) -> LabelsFile | None:
        """The labels file that it takes."""
        return self.proposal.table if self.proposal else None

    @property
    def file_count(self) -> int:
        """How many files the recipe takes; 0 without one."""
        return len(self.proposal.names) if self.proposal is not None else 0


class Choice(Struct, frozen=True):
    """The structure chosen for a folder, its evidence, and the notes on files that it leaves out.

    ``unused`` are the notes on tables and lists among them.
    """

    name: str
    evidence: tuple[str, ...]
    skip_notes: tuple[str, ...]
    proposal: Proposal
    unused: tuple[str, ...] = ()
