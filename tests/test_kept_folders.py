"""Folders as people keep them: none comes out wrong, most take two commands, refusals name a command that is right."""

from __future__ import annotations

from pathlib import Path

import kept_annotated
import kept_by_folder
import kept_in_archives
import kept_in_tables
import pytest
from kept_folders import KNOWN
from kept_trial import ASKED, REFUSED, RIGHT, try_folder

LISTS = (kept_by_folder, kept_in_tables, kept_annotated, kept_in_archives)

QUESTIONS: frozenset[str] = frozenset()
"""Folders that can be read in several ways, or need a word of their owner: a command that init names is right."""

UNREAD: frozenset[str] = frozenset()
"""Folders that init refuses and for which it knows no command that is right."""


@pytest.mark.parametrize("name", KNOWN)
def test_a_folder_is_read_as_a_person_reads_it(tmp_path: Path, name: str) -> None:
    """Labels, numbers, splits, boxes and masks of every record; or the question that leads to them."""
    outcome, why = try_folder(KNOWN[name], tmp_path)
    expected = ASKED if name in QUESTIONS else REFUSED if name in UNREAD else RIGHT
    assert outcome == expected, f"{KNOWN[name].__doc__}\n{why}"


def test_most_take_two_commands() -> None:
    """At least 150 folders, 60% of them right in two commands."""
    assert len(KNOWN) >= 150
    assert not (QUESTIONS | UNREAD) - KNOWN.keys()
    assert len(KNOWN) - len(QUESTIONS | UNREAD) >= 0.6 * len(KNOWN)
