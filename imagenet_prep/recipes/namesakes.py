"""refuse_namesakes: paths that match no file, and the files -> the error if several have one."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.text import listed


def refuse_namesakes(
    place: str, unmatched: Sequence[str], names: Sequence[str], strip: str = ""
) -> None:
    """Raise InputError if a path that no file matches ends the names of several files.

    Args:
        place: the file that has the paths.
        unmatched: the paths, each with its place in brackets.
        names: of the files.
        strip: what is taken off each path.
    """
    names_by_end: dict[int, dict[str, list[str]]] = {}
    for path_and_place in unmatched:
        path = path_alone(path_and_place).removeprefix(strip)
        depth = path.count("/")
        if depth not in names_by_end:
            names_by_end[depth] = _group_by_end(names, depth)
        namesakes = names_by_end[depth].get(path, [])
        if len(namesakes) < 2:
            continue
        raise InputError(
            f"{place}: {path_and_place} may be {listed(namesakes)}",
            "expected names that mean one file each",
            f"write the names with their folders, such as {namesakes[0]}",
        )


def path_alone(path_and_place: str) -> str:
    """The path without its place, if that follows in brackets;
    both can have brackets themselves.
    """
    if not path_and_place.endswith(")"):
        return path_and_place
    depth = 0
    for position in range(len(path_and_place) - 1, -1, -1):
        if path_and_place[position] == ")":
            depth += 1
        elif path_and_place[position] == "(":
            depth -= 1
        if not depth:
            return path_and_place[:position].removesuffix(" ")
    return path_and_place


def _group_by_end(names: Sequence[str], depth: int) -> dict[str, list[str]]:
    """The names by their last parts: the last one, with and without its ending, and ``depth``
    folders before it.
    """
    names_by_end: dict[str, list[str]] = {}
    for name in names:
        parts = name.split("/")
        end = "/".join(parts[-depth - 1 :])
        for key in {end, without_ending(end)}:
            names_by_end.setdefault(key, []).append(name)
    return names_by_end
