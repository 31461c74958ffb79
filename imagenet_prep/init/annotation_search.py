"""The files of a folder -> those that annotate images, by the tool that wrote them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from imagenet_prep.init.file_endings import DATA, MOST_READ, ending_of
from imagenet_prep.recipes.file_kinds import read_head
from imagenet_prep.recipes.formats import Format, all_formats
from imagenet_prep.recipes.path_parts import grouped, stem_of
from imagenet_prep.sources.names import below

_TAIL = 1 << 12


def find_annotations(
    folder: Path, names: Sequence[str], tables: Iterable[str], images: Sequence[str]
) -> dict[str, list[str]]:
    """The files that annotate images, by the tool that wrote them or by what shows it.

    ``tables`` may be labels files, too: a CSV with a box for each image is both.
    """
    stems = {stem_of(name) for name in images}
    files_by_tool: dict[str, list[str]] = {}
    for ending, files in grouped(names, ending_of).items():
        paired = [name for name in files if stem_of(name) in stems]
        files_of_tools = _files_by_tool(folder, files, ending, set(paired))
        if not files_of_tools and ending in DATA and 2 * len(paired) >= len(stems) > 1:
            files_of_tools = {f"{ending} files of the same names as images, maybe": paired}
        for tool, tool_files in files_of_tools.items():
            files_by_tool.setdefault(tool, []).extend(tool_files)
    for name in tables:
        format = format_of_file(folder, name, ending_of(name))
        if format is not None and not format.per_image:
            files_by_tool.setdefault(format.tool, []).append(name)
    return files_by_tool


def _files_by_tool(
    folder: Path, names: Sequence[str], ending: str, paired: Collection[str]
) -> dict[str, list[str]]:
    """The files of one ending by the tool that wrote them; the first 50 tell, if each image has a
    file.

    ``paired`` are those that have the names of images: an empty one may be that of an image without
    objects.
    """
    format_by_name = {name: format_of_file(folder, name, ending) for name in names[:MOST_READ]}
    formats = {format.key: format for format in format_by_name.values() if format is not None}
    files_by_tool: dict[str, list[str]] = {}
    for format in formats.values():
        if not format.per_image:
            files_by_tool[format.tool] = _files_of(format, format_by_name)
        elif paired or not format.is_vague:
            fitting = {*_files_of(format, format_by_name)}
            fitting.update(name for name in _files_of(None, format_by_name) if name in paired)
            others = format_by_name.keys() - fitting
            files_by_tool[format.tool] = [name for name in names if name not in others]
    return files_by_tool


def _files_of(format: Format | None, format_by_name: Mapping[str, Format | None]) -> list[str]:
    """The files of one format, or of none."""
    return [name for name in format_by_name if format_by_name[name] is format]


def format_of_file(folder: Path, name: str, ending: str) -> Format | None:
    """The format of annotations that a file is of; None for another file."""
    formats = [format for format in all_formats().values() if ending in format.endings]
    if not formats:
        return None
    ends = _read_ends(below(folder, name))
    return next((format for format in formats if format.recognises(name, ends)), None)


def _read_ends(path: Path) -> bytes:
    """The first and the last bytes of a file."""
    head = read_head(path)
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(len(head), path.stat().st_size - _TAIL))
        head += file.read(_TAIL)
    return head
