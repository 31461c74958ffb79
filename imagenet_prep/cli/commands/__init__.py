"""load_command: the command of a name; only the module of its subject is imported.

Each command turns options into one stage call, prints and returns its outcome.
"""

from __future__ import annotations

import importlib

import click

SUBJECTS = {
    "run": "whole_runs",
    "download": "raw_data_stages",
    "untar": "raw_data_stages",
    "annotate": "raw_data_stages",
    "init": "recipe_start",
    "convert": "shard_making",
    "merge": "shard_making",
    "verify": "set_checking",
    "repair": "set_checking",
    "diff": "set_checking",
    "status": "set_views",
    "report": "set_views",
    "show": "set_views",
    "export": "set_export",
    "demo": "whole_runs",
    "completion": "shell_completion",
}
"""The module of each command, in the order of work."""


def load_command(name: str) -> click.Command:
    """The command of that name."""
    module = importlib.import_module(f"{__name__}.{SUBJECTS[name]}")
    command: click.Command = getattr(module, name)
    return command


def load_commands() -> dict[str, click.Command]:
    """All commands by name, for the pages about them."""
    return {name: load_command(name) for name in SUBJECTS}
