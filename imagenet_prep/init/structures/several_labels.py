"""Several labels of an image: in one cell of a table with a sign between them, or in several
lines.
"""

from __future__ import annotations

from msgspec.structs import replace

from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import separator_of
from imagenet_prep.init.label_evidence import certainty_of, evidence_of, losses_of
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.labels_search import judge_labels, last_names
from imagenet_prep.init.proposal import ONLY_IF_ASKED, Interpretation
from imagenet_prep.init.table_forms import Sought
from imagenet_prep.init.table_proposal import propose_files, remarks_on_lists
from imagenet_prep.recipes.labels_file import LINES
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.text import listed

_PLURALS = frozenset(
    (
        *("labels", "tags", "classes", "attributes", "ids", "categories", "genres", "findings"),
        "keywords",
    )
)


def recognise(inspection: Inspection) -> Interpretation | None:
    """A file that names every image, whose cells have several labels,
    or some images in several lines.
    """
    if not inspection.items:
        return None
    plain_table = next(filter(_has_single_labels, inspection.labels), None)
    if plain_table is None:
        sign, certainty = LINES, ONLY_IF_ASKED
        names = [refusal.name for refusal in inspection.refusals]
    else:
        sign, _ = find_separator(plain_table)
        shape = shape_of(inspection.items)
        certainty = certainty_of(inspection.items, shape, plain_table)
        names = [plain_table.name]
    table = _read_several(inspection, names, sign) if sign else None
    if table is None:
        return None
    labels = set(flat_labels(table.table.labels or ()))
    classes = sorted(map(str, labels - {None}))
    manner = "a line for each" if sign == LINES else f"with {sign!r} between them"
    evidence = f"{evidence_of(inspection, table)}, and several labels, {manner}: {listed(classes)}"
    losses, skip_notes = losses_of(inspection, table, inspection.items)
    proposal, list_files = propose_files(inspection, table)
    remarks = remarks_on_lists(list_files)
    return Interpretation(
        certainty,
        (evidence, *remarks),
        f"an image can have several labels, {manner}",
        proposal,
        losses=losses,
        skip_notes=skip_notes,
        labelled=table.labelled,
        classes=len(classes),
        list_files=list_files,
    )


def _has_single_labels(table: LabelsFile) -> bool:
    return table.has_labels and not table.table.is_several


def _read_several(inspection: Inspection, names: list[str], sign: str) -> LabelsFile | None:
    """The first of some files that gives labels by this sign, by names with endings or without."""
    items = inspection.items
    sought = Sought(inspection.folder, items, last_names(items), inspection.options)
    judged = [judge_labels(sought, name, sign) for name in names]
    if not any(judged):
        stems = replace(sought, known_names=last_names(map(without_ending, items)))
        judged = [judge_labels(stems, name, sign) for name in names]
    for table in judged:
        if isinstance(table, LabelsFile) and table.has_labels:
            return table
    return None


def find_separator(table: LabelsFile) -> tuple[str, bool]:
    """The sign between several labels in a cell, and whether it is sure:
    the column's name is a plural, or the sign.
    """
    labels = table.table.labels or ()
    sign, is_sure = separator_of(labels)
    last_part = table.label.lower().rpartition("_")[2]
    last_word = last_part.rpartition(" ")[2]
    if last_word not in _PLURALS:
        return sign, is_sure
    if sign:
        return sign, True
    cells = {label for label in labels if isinstance(label, str)}
    words = [word for cell in cells for word in cell.split()]
    is_spaced = len(set(words)) < len(words) and len(words) > len(cells)
    if is_spaced:
        return " ", True
    return "", is_sure


STRUCTURES = {"several-labels": recognise}
