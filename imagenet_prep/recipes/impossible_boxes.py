"""refuse_impossible, note_impossible, count_changed: the images of a listing with their objects ->
the error, the notes and the counts of impossible boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_files import Marked
from imagenet_prep.recipes.box_policy import BoxesOutside, ImpossibleBox
from imagenet_prep.text import listed, number_of


def _impossible(marked: Mapping[int, Marked]) -> list[ImpossibleBox]:
    """The impossible boxes of all images, in the order of the images."""
    boxes: list[ImpossibleBox] = []
    for _, image in sorted(marked.items()):
        boxes += image.impossible
    return boxes


def refuse_impossible(marked: Mapping[int, Marked]) -> None:
    """Raise InputError if the recipe refuses impossible boxes and images have some:
    the error counts all of them.
    """
    refused = [box for box in _impossible(marked) if box.outcome == "refused"]
    if not refused:
        return
    box, *other_boxes = refused
    expected = box.expected
    if other_boxes:
        boxes_are = number_of(len(other_boxes), "more box is", "more boxes are")
        expected += f"; {boxes_are} impossible: {listed([other.place for other in other_boxes])}"
    hint = (
        "correct the annotations, or write in the recipe: boxes_outside: clip (or drop, "
        "which leaves such boxes out)"
    )
    raise InputError(f"{box.place}: {box.problem}", expected, hint)


def note_impossible(marked: Mapping[int, Marked], policy: BoxesOutside) -> Iterator[str]:
    """How many boxes were clipped and dropped, and the first places."""
    impossible = _impossible(marked)
    for outcome in ("clipped", "dropped"):
        places = [box.place for box in impossible if box.outcome == outcome]
        if places:
            count = number_of(len(places), "impossible box", "impossible boxes")
            yield f"boxes_outside: {policy}: {count} {outcome}: {listed(places)}"


def count_changed(marked: Mapping[int, Marked], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many boxes of each image were clipped and dropped, by its name;
    nothing for the usual image.
    """
    changed: dict[str, dict[str, int]] = {}
    for row, image in sorted(marked.items()):
        if image.impossible:
            changed[names[row]] = dict(Counter(box.outcome for box in image.impossible))
    return changed
