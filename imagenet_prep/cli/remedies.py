"""What the library says to a person, in words of the command line: commands to copy, and options by their names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from imagenet_prep.errors import Again, Call, Phrase, Text
from imagenet_prep.escaping import command_line, path_word, quoted

NAME = "imagenet-prep"
_WORK = {"init", "download", "untar", "annotate", "convert", "merge", "export"}
STAGES = frozenset(_WORK | {"verify", "repair", "diff", "report", "show", "status"})
"""The stages that the library speaks of; every other name in a Phrase is a setting."""


def program() -> str:
    """How to call this program again: by its name, or by its path where the name alone would not find it."""
    called = Path(sys.argv[0])
    folders = os.environ.get("PATH", "").split(os.pathsep)
    is_found = any((Path(folder) / NAME).exists() for folder in folders)
    return str(called) if called.name == NAME and not is_found else NAME


def to_copy(text: Text) -> str:
    """A text whose commands call this program as it was called."""
    return worded(text, program())


def worded(text: Text, called: str = NAME) -> str:
    """A text with its commands, which call this program as ``called``."""
    if isinstance(text, Call):
        options = (word for name, value in text.settings for word in _words(name, value))
        return command_line([called, text.stage, path_word(str(text.folder)), *options])
    if isinstance(text, Again):
        return command_line([called, *sys.argv[1:], *(word for setting in text.settings for word in _words(*setting))])
    if isinstance(text, Phrase):
        return text.filled(
            lambda name: f"{NAME} {name}" if name in STAGES else _option(name),
            lambda value: quoted(str(value)) if isinstance(value, Path) else worded(value, called),
        )
    return text


def _words(name: str, value: object) -> list[str]:
    """A setting as words of a command: what is on or off has no value there."""
    if isinstance(value, bool):
        return [_option(name if value else f"no_{name}")]
    return [_option(name), path_word(value) if isinstance(value, Path) else str(value)]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
