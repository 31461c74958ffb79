"""The files of a folder that may have the names of its classes."""

from __future__ import annotations

from imagenet_prep.init.file_endings import count_folders
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.recipes.path_parts import has_ending

_ENDINGS = (".json", ".txt", ".csv", ".tsv", ".pbtxt", ".names")
_LARGEST = 1 << 22
_MOST_FILES = 50


def find_name_files(inspection: Inspection) -> list[str]:
    """The files that may have the names of classes:
    the ones without another use, the nearest first.
    """
    used_files = {name for names in inspection.annotations.values() for name in names}
    for table in (*inspection.labels, *inspection.partial):
        if table.has_labels and not table.name.endswith(".json"):
            used_files.add(table.name)
    names = [
        name
        for name, size in inspection.sizes()
        if has_ending(name, _ENDINGS) and size <= _LARGEST and name not in used_files
    ]
    return sorted(names, key=count_folders)[:_MOST_FILES]
