"""The choice of a structure. An Inspection -> the Choice of one, or what prevents it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.init.column_options import refuse_unknown_label_column, unused_columns
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.packed_files import joining_hint, unpacking_hint, worth_unpacking
from imagenet_prep.init.proposal import Alternative, Choice, DoubtError, Interpretation
from imagenet_prep.init.split_options import refuse_unused_splits
from imagenet_prep.init.structures import known_structures
from imagenet_prep.init.unfit_files import ANY_FORMAT
from imagenet_prep.init.unread_files import UnreadFiles, find_unread
from imagenet_prep.recipes.inputs import hint_on_hidden
from imagenet_prep.recipes.path_parts import counted
from imagenet_prep.sources.folders import HIDDEN
from imagenet_prep.text import either, listed, number_of

_MOST_ALTERNATIVES = 4
"""Alternatives that a question names."""


def choose_structure(inspection: Inspection, structure: str | None = None) -> Choice:
    """The structure of a folder: the surest one, or the one of this name.

    Raises:
        InputError: none fits, two fit, or the folder holds what it would lose; the error
            names every fault.
        UsageError: the folder doesn't have this structure.
    """
    interpretations = _interpret(inspection)
    if structure is not None and structure not in interpretations:
        raise _no_such_structure(inspection, structure, interpretations)
    if not interpretations:
        raise all_of([*inspection.faults, _nothing_to_read(inspection)])
    name = structure or _surest(inspection, interpretations)
    interpretation = interpretations[name]
    if interpretation.alternatives:
        question = _question(inspection, {name: interpretation})
        raise all_of([*inspection.faults, *interpretation.faults, question])
    unread = find_unread(inspection, interpretation)
    faults = [*inspection.faults, *interpretation.faults]
    if structure is None:
        if unread.losses and not faults:
            raise _unaccepted(inspection, name, interpretation, unread.losses)
        problems = {fault.what for fault in faults}
        faults += [loss for loss in unread.losses if loss.what not in problems]
    if faults:
        raise all_of(list(dict.fromkeys(faults)))
    return _accept(inspection, name, interpretation, unread)


def _surest(inspection: Inspection, interpretations: Mapping[str, Interpretation]) -> str:
    """The surest structure; raises InputError if there are several."""
    certainty = max(interpretation.certainty for interpretation in interpretations.values())
    rivals: dict[str, Interpretation] = {}
    for name, interpretation in interpretations.items():
        if interpretation.certainty == certainty:
            rivals[name] = interpretation
    names = list(_without_worse_readings(rivals))
    if len(names) > 1:
        raise all_of([*inspection.faults, *_rival_faults(inspection, rivals)])
    return names[0]


def _without_worse_readings(rivals: Mapping[str, Interpretation]) -> Mapping[str, Interpretation]:
    """The only structure without faults, if it reads the same files as the others."""
    sound = {name: rival for name, rival in rivals.items() if not rival.faults}
    if len(sound) != 1:
        return rivals
    (taken,) = sound.values()
    for rival in rivals.values():
        files = set(rival.annotation_files or ())
        if rival.faults and not (files and files.issubset(taken.annotation_files or ())):
            return rivals
    return sound


def _rival_faults(inspection: Inspection, rivals: Mapping[str, Interpretation]) -> list[InputError]:
    """The question between rivals; the faults of all of them, if none of them can be taken, or
    only without the annotations.
    """
    if any(not rival.faults for rival in rivals.values()) and not _lose_annotations(rivals):
        return [_question(inspection, rivals)]
    fault_by_problem: dict[str, InputError] = {}
    for rival in rivals.values():
        for fault in rival.faults:
            fault_by_problem.setdefault(fault.what, fault)
    return list(fault_by_problem.values())


def _lose_annotations(rivals: Mapping[str, Interpretation]) -> bool:
    """Whether the rivals without faults read no file of annotations that the others have read."""
    files_of_faulty: set[str] = set()
    files_of_sound: set[str] = set()
    for rival in rivals.values():
        if rival.faults and rival.proposal is None:
            return False
        files = files_of_faulty if rival.faults else files_of_sound
        files.update(rival.annotation_files or ())
    return bool(files_of_faulty) and files_of_sound.isdisjoint(files_of_faulty)


def _interpret(inspection: Inspection) -> dict[str, Interpretation]:
    """The folder as each structure reads it that can, by its name."""
    interpretations: dict[str, Interpretation] = {}
    for name, recognise in known_structures().items():
        interpretation = recognise(inspection)
        if interpretation is not None:
            interpretations[name] = interpretation
    return interpretations


def _accept(
    inspection: Inspection, name: str, interpretation: Interpretation, unread: UnreadFiles
) -> Choice:
    """The structure as chosen, with its evidence and its doubts, and a note on everything that it
    leaves out.
    """
    assert interpretation.proposal is not None
    reason = f"as --as {name} says"
    notes: list[str] = []
    doubts: list[str] = []
    for loss in unread.losses:
        if isinstance(loss, DoubtError):
            doubts.append(f"{loss.what} ({loss.outcome}, {reason})")
            continue
        notes.append(f"{loss.what.removeprefix(f'{inspection.folder}/')} (left out, {reason})")
    return Choice(
        name,
        (*interpretation.evidence, *doubts),
        (*notes, *unread.notes, *unread.unused_tables),
        interpretation.proposal,
        tuple(unread.unused_tables),
    )


def _no_such_structure(
    inspection: Inspection, structure: str, interpretations: Collection[str]
) -> UsageError:
    """The error for a folder that can't be read by the structure that the user names."""
    refuse_unknown_label_column(inspection, structure)
    folder = inspection.folder
    problem = f"{folder} can't be read as {structure}"
    expected = "no other --as can read it either"
    hint = Hint("to see why: ", inspection.command(**{"as": None}))
    if interpretations:
        expected = f"expected --as {either(interpretations)}"
        hint = Hint("to run init without --as: ", inspection.command(**{"as": None}))
    if structure == "with-labels" and inspection.items and not inspection.refusals:
        problem = (
            f"{folder} holds no file that names at least half of its {inspection.noun}s, "
            "nor does the folder above"
        )
        expected = "expected a file of labels"
        if interpretations:
            expected += f", or --as {either(interpretations)}"
        hint = _hint_on_labels(inspection)
    return UsageError(problem, expected, hint)


def _hint_on_labels(inspection: Inspection) -> Hint:
    """The command for the first table that labels less than half of the images;
    without one, the form of a table to write.
    """
    for table in inspection.partial:
        if table.has_labels and table.label:
            label = f"{table.name}:{table.label}"
            images = number_of(table.labelled, inspection.noun)
            command = inspection.command(label=label)
            verb = "labels" if len(table.places) == 1 else "label"
            return Hint(f"for the {images} that {table.place} {verb}: ", command)
    return Hint(f"write a CSV with the columns filename and label into {inspection.folder}")


def _nothing_to_read(inspection: Inspection) -> InputError:
    """The error for a folder that no structure can read."""
    names = inspection.listing.names
    content = counted(names, 5) or "nothing"
    hidden = inspection.remarks.passed.get(HIDDEN, ())
    if hidden:
        content += f", and hidden files, which init skips: {listed(hidden)}"
    formats = ", ".join(FORMATS)
    expected = (
        f"expected images ({formats}), arrays (.npy, .npz), or tars or zips of them; "
        f"found {content}"
    )
    hint = joining_hint(inspection.folder, names)
    if not hint:
        packed = inspection.others.get("packed", ())
        try:
            unpackable = worth_unpacking(inspection.folder, packed, inspection.engine)
        except InputError as fault:
            return fault
        hint = unpacking_hint(inspection.folder, unpackable)
    if not hint:
        hint = ANY_FORMAT if names else hint_on_hidden(hidden)
    return InputError(f"{inspection.folder} holds nothing to make records of", expected, hint)


def _unaccepted(
    inspection: Inspection, name: str, interpretation: Interpretation, losses: Sequence[InputError]
) -> InputError:
    """The error for what a structure would lose or change, which its own command accepts."""
    proposal = interpretation.proposal
    split_names = proposal.split_names if proposal is not None else ()
    refuse_unused_splits(inspection.folder, inspection.options, inspection, split_names)
    remedy = f"to {_aim_of(losses)}, run the command with --as {name} below"
    alternative = _alternative(inspection, name, interpretation)
    accepting = replace(alternative, options={**alternative.options, "as": name})
    command = _choice_line(inspection, accepting)
    error = all_of(list(dict.fromkeys(losses)))
    table = interpretation.table
    if table is not None and table.has_labels and not interpretation.labelled:
        return error  # no image would be left
    hint = join_hints("; ", filter(None, (error.hint, remedy)))
    accepted = InputError(error.what, error.detail, hint)
    return accepted.with_choices([*error.choices, command])


def _aim_of(losses: Sequence[InputError]) -> str:
    """The verb of a command that accepts losses and doubts."""
    doubts = [loss for loss in losses if isinstance(loss, DoubtError)]
    verbs = list(dict.fromkeys(doubt.aim for doubt in doubts))
    if len(doubts) < len(losses):
        verbs.append(
            "leave out what else does not fit" if doubts else "leave out what does not fit"
        )
    return " and ".join(verbs)


def _question(inspection: Inspection, interpretations: Mapping[str, Interpretation]) -> InputError:
    """The question between interpretations, a line each, with what they leave out."""
    alternatives: list[Alternative] = []
    evidence: list[str] = []
    meanings: list[str] = []
    hints: list[str] = []
    way_count = 0
    stopped_count = 0
    for name, interpretation in interpretations.items():
        evidence += interpretation.evidence
        meanings.append(f"{name}: {interpretation.meaning}")
        ways = interpretation.alternatives or [_alternative(inspection, name, interpretation)]
        if interpretation.faults and not interpretation.alternatives:
            faults = "; ".join(fault.what for fault in interpretation.faults)
            hints.append(f"--as {name} has an error: {faults}")
            stopped_count += 1
            continue
        way_count += len(ways)
        alternatives += ways
        hints += _hints_on_losses(inspection, name, find_unread(inspection, interpretation).losses)
    ways_text = number_of(way_count, "way")
    if stopped_count:
        have = "has an error" if stopped_count == 1 else "have errors"
        ways_text += f" ({stopped_count} more {have})"
    evidence_text = join_hints("; ", dict.fromkeys(evidence))
    problem = Hint(f"{inspection.folder} can be read in {ways_text}: ", evidence_text)
    expected = f"expected one way ({'; '.join(meanings)})"
    choose = "choose one" if len(alternatives) > 1 else "run the command below"
    if len(alternatives) > _MOST_ALTERNATIVES:
        choose += f" ({_MOST_ALTERNATIVES} of them are below)"
    hints.append(f"{choose}; each line says what it reads:")
    first_alternatives = alternatives[:_MOST_ALTERNATIVES]
    lines = [_choice_line(inspection, alternative) for alternative in first_alternatives]
    error = InputError(problem, expected, "; ".join(hints))
    return error.with_choices(lines)


def _hints_on_losses(
    inspection: Inspection, name: str, losses: Sequence[InputError]
) -> Iterator[str]:
    """The losses and the doubts of a structure, a sentence each."""
    lost = [loss for loss in losses if not isinstance(loss, DoubtError)]
    if lost:
        yield f"--as {name} leaves something out ({_lost_text(inspection, lost)})"
    for loss in losses:
        if isinstance(loss, DoubtError):
            yield f"--as {name} would {loss.aim} ({_lost_text(inspection, [loss])})"


def _lost_text(inspection: Inspection, losses: Sequence[InputError]) -> str:
    """The sentences of losses, without the name of the folder."""
    texts: list[str] = []
    for loss in losses:
        text = loss.what
        for lead in ("/", ": ", " holds "):
            text = text.removeprefix(f"{inspection.folder}{lead}")
        texts.append(text)
    return "; ".join(texts)


def _alternative(inspection: Inspection, name: str, interpretation: Interpretation) -> Alternative:
    """An interpretation as one that a user can choose; without the user's options that it does
    not take.
    """
    proposal = interpretation.proposal
    dropped: dict[str, object] = {}
    if proposal is not None:
        dropped = dict.fromkeys(unused_columns(inspection, name, proposal))
        if not inspection.options.splits.keys() <= set(proposal.split_names):
            dropped["splits"] = {}
    if not interpretation.labelled:
        dropped["names"] = None
    total = interpretation.file_count if interpretation.containers else interpretation.total
    alternative = Alternative(
        interpretation.labelled,
        interpretation.classes,
        {**dropped, **(interpretation.options or {"as": name})},
        total,
    )
    if interpretation.labelled:
        return alternative
    count = number_of(interpretation.file_count, _noun_of(inspection, [alternative]))
    has_masks = proposal is not None and "mask" in proposal.annotations
    has = "with masks" if has_masks else "without a class"
    return replace(alternative, reads=f"{count} {has}")


def _noun_of(inspection: Inspection, alternatives: Sequence[Alternative]) -> str:
    """The word for one of what alternatives count: a file of arrays holds many samples."""
    has_samples = any(alternative.total for alternative in alternatives)
    return "sample" if has_samples and inspection.content == "array" else inspection.noun


def _choice_line(inspection: Inspection, alternative: Alternative) -> str:
    """An alternative in one line, which ends with its command."""
    total = alternative.total or len(inspection.items or inspection.members)
    classes = number_of(alternative.classes, "class", "classes")
    noun = _noun_of(inspection, [alternative])
    counts = f"{alternative.labelled:,} of {number_of(total, noun)}, {classes}"
    if not alternative.labelled:
        counts = alternative.reads or f"{number_of(total, noun)} without a class"
    return Hint(f"  {counts}: ", inspection.command(**alternative.options))
