"""Writes the tables of options in docs/cli.md from the command line itself;
`--check` only compares.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import click

from imagenet_prep.cli.commands import cli
from imagenet_prep.cli.options import every_command

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
SHARED = 3
"""An option that this many commands share with the same help is explained once."""


def name_of(option: click.Option) -> str:
    """An option as you type it, with its value."""
    kind = option.type
    choices = "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else ""
    value = (
        "" if option.is_flag else f" {choices or option.metavar or kind.name.split()[0].upper()}"
    )
    return ", ".join(sorted(option.opts, key=len)) + value


def row(option: click.Option) -> str:
    """One row of a table: option, default, help."""
    shown = option.default if option.show_default and not option.is_flag else ""
    cells = (
        f"`{name_of(option)}`".replace("|", r"\|"),
        f"`{shown}`" if shown != "" else "",
        option.help or "",
    )
    return f"| {' | '.join(cells)} |"


def options_of(command: click.Command) -> list[click.Option]:
    """Its declared options, without click's own --help and those of every command."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return [option for option in options if option not in every_command]


def table_of(rows: list[str]) -> str:
    """A table of options."""
    return "| option | default | meaning |\n|---|---|---|\n" + "\n".join(rows)


def describe_options(command: click.Command, shared_rows: list[str]) -> str:
    """The table of a command's own options, and the names of those it shares with others."""
    rows = []
    shared_names = []
    for option in options_of(command):
        text = row(option)
        if text in shared_rows:
            shared_names.append(f"`{max(option.opts, key=len)}`")
        else:
            rows.append(text)
    paragraphs = []
    if rows:
        paragraphs.append(table_of(rows))
    if shared_names:
        paragraphs.append(f"Shared options: {', '.join(shared_names)}.")
    return "\n\n".join(paragraphs)


def render(page: str) -> str:
    """The page with every table generated again."""
    counts = Counter[str]()
    for command in cli.commands.values():
        counts.update(map(row, options_of(command)))
    shared_rows = [text for text, count in counts.items() if count >= SHARED]
    everywhere = [row(option) for option in every_command]
    tables = {"shared": table_of(shared_rows), "every": table_of(everywhere)}
    for name, command in cli.commands.items():
        tables[name] = describe_options(command, shared_rows)

    def filled(match: re.Match[str]) -> str:
        return f"<!-- options: {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- options: (\w+) -->.*?<!-- end -->", filled, page, flags=re.S)


if __name__ == "__main__":
    rendered = render(PAGE.read_text())
    if "--check" in sys.argv:
        is_current = rendered == PAGE.read_text()
        sys.exit(0 if is_current else f"{PAGE} is out of date: run python {sys.argv[0]}")
    PAGE.write_text(rendered)
