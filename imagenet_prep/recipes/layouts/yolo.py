"""YOLO: images, a text file of the boxes of each, and data.yaml with the names of the classes."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_folder import describe_annotations as describe
from imagenet_prep.recipes.annotated_folder import propose_annotations as recipe
from imagenet_prep.recipes.annotated_folder import recognise_annotations, refuse_annotations
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.layouts import Reading
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.text import listed

__all__ = ["describe", "recipe", "recognise"]


def recognise(inspection: Inspection) -> Reading | None:
    """Text files with the names of the images, and a file of the names of classes."""
    files = [name for tool, names in inspection.annotations.items() if "YOLO" in tool for name in names]
    stems = set(map(stem_of, inspection.items))
    labels = [name for name in files if name.endswith(".txt") and stem_of(name) in stems]
    if inspection.content != "image" or not labels:
        return None
    folders = sorted({name.rpartition("/")[0] or "." for name in labels})
    every = [*files, *(name for names in inspection.others.values() for name in names)]
    names = [name for name in every if name.endswith((".yaml", ".yml", "classes.txt", "obj.names"))]
    names.sort(key=lambda name: (not name.endswith((".yaml", ".yml")), not name.endswith("data.yaml")))
    if not names:
        what = f"{inspection.folder} has YOLO annotations, and no file of the names of classes"
        hint = "add data.yaml with names: [...], or classes.txt with a class in each line"
        return refuse_annotations(inspection, "boxes", InputError(what, "expected one", hint))
    value = {"yolo": folders, "names": names[0]}
    return recognise_annotations(inspection, "boxes", value, [*labels, names[0]], listed(folders))
