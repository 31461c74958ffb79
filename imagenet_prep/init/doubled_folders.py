"""doubts_of_doubled: a folder whose files are also in a folder within it -> the doubt about taking
each image twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.moves_away import move_next_to
from imagenet_prep.init.proposal import DoubtError, Proposal
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.text import number_of


def doubts_of_doubled(inspection: Inspection, proposal: Proposal) -> list[InputError]:
    """The doubt about a folder that has the files of the folder around it once more, if the recipe
    takes both.
    """
    if proposal.kind not in ("files", "folders", "table"):
        return []
    taken = {f"{proposal.lead}{name}" for name in proposal.names}
    if proposal.kind == "table":
        taken = set(inspection.items)
    sizes = {name: size for name, size in inspection.sizes() if name in taken}
    doubts: list[InputError] = []
    for folder, files in _doubled(sizes):
        source = inspection.folder / folder
        around = inspection.folder / Path(folder).parent
        count = number_of(len(files), inspection.noun)
        problem = f"{source} has {count} of {around} again, by their names and sizes"
        hint = f"move {source} away"
        move = move_next_to(inspection, folder, folder.replace("/", "-"))
        if move is not None:
            hint = Hint("to move the copy away: ", move)
        aim, outcome = "take these images twice", "taken twice"
        doubts.append(DoubtError.of(aim, outcome, problem, "expected each image once", hint))
    return doubts


def _doubled(sizes: Mapping[str, int]) -> Iterator[tuple[str, Sequence[str]]]:
    """The outermost folders all of whose files the folder around them has, too, with these files;
    ``sizes`` are the bytes of files by their paths.
    """
    files_by_folder: dict[str, list[str]] = {}
    for name in sizes:
        folder = name.rpartition("/")[0]
        while folder:
            if files_by_folder.setdefault(folder, []) or _is_twice(name, folder, sizes):
                files_by_folder[folder].append(name)
            folder = folder.rpartition("/")[0]
    doubled: list[str] = []
    for folder in sorted(files_by_folder):
        files = files_by_folder[folder]
        if len(files) < 2 or split_name(base_name(folder)):
            continue
        if folder.startswith(tuple(f"{outer}/" for outer in doubled)):
            continue
        if all(_is_twice(name, folder, sizes) for name in files):
            doubled.append(folder)
            yield folder, files


def _is_twice(name: str, folder: str, sizes: Mapping[str, int]) -> bool:
    """Whether the folder around a folder has a file like one in that folder."""
    around = folder.rpartition("/")[0]
    twin = f"{around}/{name.removeprefix(f'{folder}/')}".lstrip("/")
    return sizes.get(twin) == sizes[name]
