"""The key `source` of a recipe: a Proposal -> paths, or patterns that match its files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from imagenet_prep.escaping import escaped
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.recipes.columns import Content, has_ending_of
from imagenet_prep.recipes.path_parts import base_name, folder_around, parent_of
from imagenet_prep.recipes.recipe_lines import block, path_below
from imagenet_prep.sources.patterns import literal

_MOST_NAMED = 20  # tars that a recipe lists one by one


def render_source(proposal: Proposal, place: str) -> str:
    """The key `source`, with the remarks on it; ``place`` is the folder as the recipe has it."""
    note = "read in place"
    if proposal.kind == "files":
        note = "patterns of the images"
    elif proposal.kind == "folders":
        note = "a folder per class"
        if proposal.splits:
            note = f"the splits, each with {note}"
    remarks = "".join(f"\n# {escaped(remark)}" for remark in proposal.remarks)
    return block("source", _source(proposal, place), note) + remarks


def _source(proposal: Proposal, place: str) -> dict[str, Any]:
    """The value of `source`."""
    files: Any
    if proposal.paths:
        patterns = {split: _few(names, place) for split, names in proposal.paths.items()}
        files = patterns.get("", patterns)
    else:
        lead = path_below(place, proposal.lead.rstrip("/"))
        files = lead if proposal.kind == "folders" else _patterns(proposal, lead)
    return {proposal.kind: files, **proposal.options}


def literal_folder(proposal: Proposal, place: str) -> str:
    """The folder that leads to all files, as a pattern of `splits` has it: below the source's, if
    that is absolute.
    """
    if place.startswith("/"):
        return "."
    return literal(path_below(place, proposal.lead.rstrip("/")))


def _few(names: Sequence[str], place: str) -> list[str]:
    """The names, or patterns that match them if they are many."""
    if len(names) <= _MOST_NAMED:
        return [literal(path_below(place, name)) for name in names]
    folder = literal(place)
    patterns = sorted({path_below(folder, re.sub(r"\d+", "*", name)) for name in names})
    if len(patterns) <= _MOST_NAMED:
        return patterns
    lead = "**/" if any("/" in name for name in names) else ""
    endings = sorted({name.rpartition(".")[2] for name in names})
    return [path_below(folder, f"{lead}*.{ending}") for ending in endings]


def _patterns(proposal: Proposal, place: str) -> list[str]:
    """The patterns that match all files, in any folder or in each one that has some."""
    if proposal.in_named_folders:
        return _patterns_by_folder(proposal, place)
    lead = "**/" if any("/" in name for name in proposal.names) else ""
    if around := folder_around(proposal.names):
        lead += f"{literal(around)}/"
    patterns = _name_patterns(proposal.content, proposal.names)
    return [path_below(literal(place), lead + pattern) for pattern in patterns]


def _patterns_by_folder(proposal: Proposal, place: str) -> list[str]:
    names_by_folder: dict[str, list[str]] = {}
    for name in proposal.names:
        names_by_folder.setdefault(parent_of(name), []).append(name)
    patterns: list[str] = []
    for folder, names in sorted(names_by_folder.items()):
        lead = literal(path_below(place, folder))
        for pattern in _name_patterns(proposal.content, names):
            patterns.append(path_below(lead, pattern))
    return patterns


def _name_patterns(content: Content, names: Sequence[str]) -> list[str]:
    """The patterns that match the names of files, one per file extension;
    names without one give theirs, with any digits.
    """
    by_ending: set[str] = set()
    by_name: set[str] = set()
    for name in names:
        if has_ending_of(content, name):
            by_ending.add(f"*.{literal(name.rpartition('.')[2])}")
        else:
            by_name.add(re.sub(r"\d+", "[0-9]*", literal(base_name(name))))
    return ["*"] if len(by_name) > _MOST_NAMED else sorted(by_ending | by_name)
