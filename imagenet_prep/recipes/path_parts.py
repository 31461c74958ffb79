"""Parts of the paths of files: stems, endings and folders; paths grouped and counted by them."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from imagenet_prep.text import number_of


def base_name(path: str) -> str:
    """The name of a file or folder without the folders around it."""
    return path.rpartition("/")[2]


def composed(text: str) -> str:
    """A text with each letter and its marks as one character: macOS has two in names of files."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def parent_of(path: str) -> str:
    """The folders around a file or folder; "" for none."""
    return path.rpartition("/")[0]


def has_ending(name: str, endings: str | tuple[str, ...]) -> bool:
    """Whether a name ends so, in letters of either case."""
    return name.lower().endswith(endings)


def stem_of(name: str) -> str:
    """The name of a file without its folders and its ending."""
    last = name.rpartition("/")[2]
    return last.rpartition(".")[0] or last


def suffix_of(name: str) -> str:
    """The ending of a file's name as types are counted by: ".jpg";
    the whole name if it has none.
    """
    last = name.rpartition("/")[2]
    stem, dot, suffix = last.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else last


def grouped(names: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """The names by their key, in their order."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return groups


def counted(names: Iterable[str], most: int = 8) -> str:
    """How many files there are of each type: "12 .gif, 3 .webp"."""
    counts = Counter(map(suffix_of, names)).most_common()
    text = ", ".join(f"{count:,} {suffix}" for suffix, count in counts[:most])
    if len(counts) > most:
        others = sum(count for _, count in counts[most:])
        text += f", {number_of(others, 'other')}"
    return text


def folder_around(names: Iterable[str]) -> str:
    """The name of the folder that each file is directly in:
    "images" for a/images/1.png and b/images/2.png; or "".
    """
    folders = {base_name(parent_of(name)) for name in names}
    return folders.pop() if len(folders) == 1 else ""


def folders_around(names: Sequence[str]) -> str:
    """The folders that all of these files are in, with a slash behind them; "" for none."""
    first_folder = parent_of(min(names))
    last_folder = parent_of(max(names))
    common = os.path.commonpath([first_folder, last_folder])
    return f"{common}/" if common else ""
