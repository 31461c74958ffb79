"""Writes the pages in docs/generated from the code (the options of each command, the formats of
annotations, every public name), and the notebook of the tutorial. `--check` only compares.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import imagenet_prep
from imagenet_prep.cli.base_command import every_command
from imagenet_prep.cli.commands import load_commands
from imagenet_prep.init import structures
from imagenet_prep.recipes.formats import all_formats

DOCS = Path(__file__).parents[1] / "docs"
SHARED = 3
"""An option that this many commands share with the same help is explained once."""

WIDEST = 90
"""Characters of a signature's line."""

LONGEST_DEFAULT = 24
"""Characters of a default that a signature shows."""

OFFERED_MODULES = ("records", "torch", "tensorflow")
"""Rooms whose public names are part of the API."""


# options ------------------------------------------------------------------------------------------


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


def options_page() -> str:
    """The options of every command."""
    counts = Counter[str]()
    for command in load_commands().values():
        counts.update(map(row, options_of(command)))
    shared_rows = [text for text, count in counts.items() if count >= SHARED]
    everywhere = [row(option) for option in every_command]
    sections = [
        "# Options of every command",
        "[The command line](../cli.md) says what each command does. `imagenet-prep COMMAND --help`"
        " prints the same options.",
        "## Options that each command has",
        table_of(everywhere),
        "## Shared options",
        table_of(shared_rows),
    ]
    for name, command in load_commands().items():
        if options_of(command):
            sections += [f"## {name}", describe_options(command, shared_rows)]
    return "\n\n".join(sections) + "\n"


# formats ------------------------------------------------------------------------------------------


def structure_lines() -> list[str]:
    """The other structures of `init --as`, by their modules' first sentences."""
    box_structures = {box_format.structure for box_format in all_formats().values()}
    lines = []
    for module_info in pkgutil.iter_modules(structures.__path__):
        module = importlib.import_module(f"{structures.__name__}.{module_info.name}")
        values = [
            f"`{value}`"
            for value in getattr(module, "STRUCTURES", {})
            if value not in box_structures
        ]
        if values:
            docstring = (module.__doc__ or "").replace("``", "`")
            paragraph = " ".join(docstring.partition("\n\n")[0].split())
            lines.append(f"- {', '.join(values)}: {paragraph.rstrip('.')}")
    return lines


def formats_page() -> str:
    """The formats of annotations, by the rows that their modules declare."""
    rows = [
        f"| {tool} | `{box_format.structure}` | {usage} |"
        for box_format in all_formats().values()
        for tool, usage in box_format.usage.items()
    ]
    sections = [
        "# Formats of annotations",
        "`init` recognizes these files. `--as` chooses one of them, and the key is what `init`"
        " writes into the recipe ([COCO, VOC, YOLO and masks](../howto/coco-voc.md)).",
        "## Formats",
        "| tool | `--as` | key in the recipe |\n|---|---|---|\n" + "\n".join(sorted(rows)),
        "## Other structures",
        "`--as` takes these values, too:",
        "\n".join(structure_lines()),
    ]
    return "\n\n".join(sections).replace("](#", "](../howto/coco-voc.md#") + "\n"


# the API ------------------------------------------------------------------------------------------


def parameters_of(value: object) -> tuple[list[str], str]:
    """The parameters of a function or a class, and what a function returns."""
    fields = getattr(value, "__struct_fields__", None)
    if fields is not None:
        return [f"{name}=..." for name in fields], ""
    signature = inspect.signature(value)  # type: ignore[arg-type]
    parameters = []
    separated = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not separated:
            parameters.append("*")
        separated = parameter.kind is not parameter.POSITIONAL_OR_KEYWORD
        default = "" if parameter.default is parameter.empty else f"={shown(parameter.default)}"
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        parameters.append(f"{star}{parameter.name}{default}")
    is_plain = isinstance(value, type) or signature.return_annotation is signature.empty
    return parameters, "" if is_plain else f" -> {signature.return_annotation}"


def shown(default: object) -> str:
    """A default as one writes it; what has no short form is left to the docstring."""
    text = repr(default)
    return text if len(text) <= LONGEST_DEFAULT and "<" not in text else "..."


def signature_of(name: str, value: object) -> str:
    """How a name is called, a parameter per line where one line is too long."""
    parameters, result = parameters_of(value)
    line = f"{name}({', '.join(parameters)}){result}"
    if len(line) <= WIDEST:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){result}"])


def describe_name(name: str, value: object) -> str:
    """A public name: how it is called, and its docstring."""
    docstring = inspect.cleandoc(value.__doc__ or "").replace("``", "`")
    sections = re.sub(
        r"^(Args|Attributes|Returns|Yields|Raises):$", r"**\1**\n", docstring, flags=re.M
    )
    listed = re.sub(r"^    (\w[\w*]*): ", r"- `\1`: ", sections, flags=re.M)
    text = re.sub(r"^ {4,}", "  ", listed, flags=re.M)
    return f"## {name}\n\n```\n{signature_of(name, value)}\n```\n\n{text}"


def api_page() -> str:
    """Every public name with its docstring."""
    sections = [
        "# Every public name",
        "[From Python](../python.md) has examples.",
    ]
    for name in imagenet_prep.__all__:
        if name != "records":
            sections.append(describe_name(name, getattr(imagenet_prep, name)))
    for module_name in OFFERED_MODULES:
        module = __import__(f"imagenet_prep.{module_name}", fromlist=["__all__"])
        offered = {name: getattr(module, name) for name in module.__all__}
        for name, value in offered.items():
            if callable(value):
                sections.append(describe_name(f"{module_name}.{name}", value))
    return "\n\n".join(sections) + "\n"


# the notebook -------------------------------------------------------------------------------------


def notebook() -> str:
    """The tutorial as a notebook: text, and each block as a cell."""
    page = (DOCS / "tutorial.md").read_text()
    cells = []
    for text, language, code in re.findall(
        r"(.*?)(?:^```(\w+)\n(.*?)^```\n|\Z)", page, re.M | re.S
    ):
        if text.strip():
            cells.append(cell_of("markdown", text.strip()))
        if code:
            cells.append(cell_of("code", code_of(language, code.rstrip())))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def code_of(language: str, code: str) -> str:
    """A block as a cell: a line of the shell starts with ``!``, one of pip with ``%``."""
    if language != "sh":
        return code
    lines = []
    for line in code.splitlines():
        mark = "%" if line.startswith("pip ") else "!"
        lines.append(mark + line.replace(" --open", "").partition("  #")[0].rstrip())
    return "\n".join(lines)


def cell_of(kind: str, text: str) -> dict[str, Any]:
    """A cell of a notebook."""
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(True)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


PAGES: dict[str, Callable[[], str]] = {
    "generated/options.md": options_page,
    "generated/formats.md": formats_page,
    "generated/api.md": api_page,
    "tutorial.ipynb": notebook,
}


def main() -> int:
    """Write the pages, or name those that are out of date."""
    stale = []
    for name, render in PAGES.items():
        text = render()
        path = DOCS / name
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}: run python {sys.argv[0]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
