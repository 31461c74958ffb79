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
    """Its declared options, without click's own --help."""
    return [each for each in command.params if isinstance(each, click.Option)]


def render(page: str) -> str:
    """The page with every table generated again."""
    head = "| option | default | meaning |\n|---|---|---|\n"
    counted = Counter(
        row(each) for command in cli.commands.values() for each in options_of(command)
    )
    shared = [text for text, count in counted.items() if count >= SHARED]
    tables = {"shared": head + "\n".join(shared)}
    for name, command in cli.commands.items():
        rows = [row(each) for each in options_of(command)]
        own = [each for each in rows if each not in shared]
        others = ", ".join(
            f"`{max(each.opts, key=len)}`" for each in options_of(command) if row(each) in shared
        )
        table = head + "\n".join(own) if own else ""
        tables[name] = "\n\n".join(
            filter(None, (table, f"Shared options: {others}." if others else ""))
        )

    def filled(match: re.Match[str]) -> str:
        return f"<!-- options: {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- options: (\w+) -->.*?<!-- end -->", filled, page, flags=re.S)


if __name__ == "__main__":
    made = render(PAGE.read_text())
    if "--check" in sys.argv:
        sys.exit(
            0 if made == PAGE.read_text() else f"{PAGE} is out of date: run python {sys.argv[0]}"
        )
    PAGE.write_text(made)
