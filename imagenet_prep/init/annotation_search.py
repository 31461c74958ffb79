"""The files of a folder -> those that annotate images, by the tool that wrote them."""

from __future__ import annotations

import codecs
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
        is_most = 2 * len(paired) >= len(stems) > 1
        if not files_of_tools and ending in DATA and is_most:
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
    format_by_name: dict[str, Format | None] = {}
    formats: dict[str, Format] = {}
    for name in names[:MOST_READ]:
        format_of_name = format_of_file(folder, name, ending)
        format_by_name[name] = format_of_name
        if format_of_name is not None:
            formats[format_of_name.key] = format_of_name
    files_by_tool: dict[str, list[str]] = {}
    for format in formats.values():
        fitting_files = _files_of(format, format_by_name)
        if not format.per_image:
            files_by_tool[format.tool] = fitting_files
        elif paired or not format.is_vague:
            files_of_none = _files_of(None, format_by_name)
            fitting_files += [name for name in files_of_none if name in paired]
            others = format_by_name.keys() - fitting_files
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
    for format in formats:
        if format.recognises(name, ends):
            return format
    return None


def _read_ends(path: Path) -> bytes:
    """The first and the last bytes of a file, without the mark of UTF-8 at its start."""
    head = read_head(path)
    mark_length = len(head) - len(head.removeprefix(codecs.BOM_UTF8))
    with contextlib.suppress(OSError), path.open("rb") as file:
        start_of_tail = path.stat().st_size - _TAIL
        file.seek(max(len(head), start_of_tail))
        head += file.read(_TAIL)
    return head[mark_length:]
