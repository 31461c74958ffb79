"""The choice of a structure. An Inspection -> the Choice of one, or what prevents it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.packed_files import joining_hint, unpacking_hint
from imagenet_prep.init.proposal import Alternative, Choice, Interpretation
from imagenet_prep.init.structures import known_structures
from imagenet_prep.init.unread_files import UnreadFiles, find_unread
from imagenet_prep.recipes.path_parts import counted
from imagenet_prep.text import number_of

_MOST_ALTERNATIVES = 4
"""Alternatives that a question names."""

_ANY_FORMAT = (
    'write source: {python: "module:function"} in a recipe: a function of yours can read any format'
)
"""The hint for files that nothing here reads."""


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
    surest = max(interpretations, key=lambda name: interpretations[name].certainty)
    name = structure or surest
    interpretation = interpretations[name]
    rivals: dict[str, Interpretation] = {}
    for rival, other in interpretations.items():
        if other.certainty == interpretation.certainty:
            rivals[rival] = other
    if structure is None and len(rivals) > 1:
        raise all_of([*inspection.faults, _question(inspection, rivals)])
    if interpretation.alternatives:
        question = _question(inspection, {name: interpretation})
        raise all_of([*inspection.faults, *interpretation.faults, question])
    unread = find_unread(inspection, interpretation)
    faults = [*inspection.faults, *interpretation.faults]
    if structure is None:
        faults += _unaccepted(inspection, name, interpretation, unread.losses)
    if faults:
        raise all_of(list(dict.fromkeys(faults)))
    return _accept(inspection, name, interpretation, unread)


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
    """The structure as chosen, with a note on everything that it leaves out or mends."""
    assert interpretation.proposal is not None
    reason = f"as --as {name} says"
    notes: list[str] = []
    for loss in unread.losses:
        notes.append(f"{loss.what.removeprefix(f'{inspection.folder}/')} (left out, {reason})")
    for fault in interpretation.mended_faults:
        notes.append(f"{fault.what} ({interpretation.mended}, {reason})")
    return Choice(
        name,
        interpretation.evidence,
        (*notes, *unread.notes, *unread.unused_tables),
        interpretation.proposal,
        tuple(unread.unused_tables),
    )


def _no_such_structure(
    inspection: Inspection, structure: str, interpretations: Collection[str]
) -> UsageError:
    """The error for a folder that can't be read by the structure that the user names."""
    problem = f"{inspection.folder} can't be read as {structure}"
    hint = "leave --as out to see why"
    if structure == "with-labels" and not inspection.refusals:
        problem = (
            f"{inspection.folder} holds no file that names its images, nor does the folder above"
        )
        hint = "write a CSV with the columns filename and label into it"
    expected = f"expected one of {', '.join(interpretations) or 'no structure at all'}"
    return UsageError(problem, expected, hint)


def _nothing_to_read(inspection: Inspection) -> InputError:
    """The error for a folder that no structure can read."""
    names = inspection.listing.names
    content = counted(names, 5) or "nothing"
    expected = (
        f"expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; found {content}"
    )
    hint = joining_hint(inspection.folder, names)
    hint = hint or unpacking_hint(inspection.folder, inspection.others.get("packed", ()))
    if not hint and names:
        hint = _ANY_FORMAT
    return InputError(f"{inspection.folder} holds nothing to make records of", expected, hint)


def _unaccepted(
    inspection: Inspection, name: str, interpretation: Interpretation, losses: Sequence[InputError]
) -> list[InputError]:
    """The faults of what a structure would lose or change, which its own command accepts."""
    has_faults = bool(interpretation.faults)
    problems = {fault.what for fault in (*inspection.faults, *interpretation.faults)}
    commands: list[str] = []
    if not has_faults:
        options = {**interpretation.options, "as": name}
        accepting = Alternative(interpretation.labelled, interpretation.classes, options)
        commands.append(_choice_line(inspection, accepting))
    faults: list[InputError] = []
    for verb, causes in (
        ("leave it out", losses),
        (interpretation.mending, interpretation.mended_faults),
    ):
        remedy = "" if has_faults else f"to {verb}, run the command below"
        for cause in causes:
            if cause.what not in problems:
                hint = join_hints("; ", filter(None, (cause.hint, remedy)))
                fault = InputError(cause.what, cause.detail, hint)
                faults.append(fault.with_choices([*cause.choices, *commands]))
    return faults


def _question(inspection: Inspection, interpretations: Mapping[str, Interpretation]) -> InputError:
    """The question between interpretations, a line each, with what they leave out."""
    alternatives: list[Alternative] = []
    evidence: list[str] = []
    meanings: list[str] = []
    hints: list[str] = []
    for name, interpretation in interpretations.items():
        alternatives += interpretation.alternatives or [_alternative(name, interpretation)]
        evidence += interpretation.evidence
        meanings.append(f"{name}: {interpretation.meaning}")
        losses = find_unread(inspection, interpretation).losses
        if losses:
            lost = [loss.what.removeprefix(f"{inspection.folder}/") for loss in losses]
            hints.append(f"--as {name} leaves out: {'; '.join(lost)}")
    problem = Hint(
        f"{inspection.folder} can be read in {len(alternatives)} ways: ",
        join_hints("; ", evidence),
    )
    expected = f"expected one way ({'; '.join(meanings)})"
    hints.append("choose one; each line counts the images that get a class:")
    first_alternatives = alternatives[:_MOST_ALTERNATIVES]
    lines = [_choice_line(inspection, alternative) for alternative in first_alternatives]
    error = InputError(problem, expected, "; ".join(hints))
    return error.with_choices(lines)


def _alternative(name: str, interpretation: Interpretation) -> Alternative:
    """An interpretation as one that a user can choose."""
    return Alternative(
        interpretation.labelled,
        interpretation.classes,
        interpretation.options or {"as": name},
        interpretation.file_count if interpretation.containers else 0,
    )


def _choice_line(inspection: Inspection, alternative: Alternative) -> str:
    """An alternative in one line, which ends with its command."""
    total = alternative.total or len(inspection.items or inspection.members)
    classes = number_of(alternative.classes, "class", "classes")
    counts = f"{alternative.labelled:,} of {total:,} images, {classes}"
    return Hint(f"  {counts}: ", inspection.command(**alternative.options))
