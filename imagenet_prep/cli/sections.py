"""Help in sections: the commands in the order of work, a line each; the options of a command by what they are about."""

from __future__ import annotations

from collections.abc import Iterable

import click

COMMANDS: dict[str, dict[str, str]] = {
    "Make": {
        "run": "every stage that is needed, in order",
        "download": "fetch the archives, with your credentials",
        "untar": "make image folders; convert needs none",
        "annotate": "bounding boxes: from the archive to a CSV",
        "init": "propose a recipe for a folder of your own",
        "convert": "images to shards",
        "merge": "finish a set that ranks have made",
        "export": "the same records in another container",
    },
    "Check": {
        "verify": "prove the shards right, or say what is wrong",
        "repair": "make again what is wrong or missing",
        "diff": "which records of two sets differ, and how",
    },
    "Look": {
        "status": "how far each stage has come, and what is next",
        "report": "a page to look at: totals, charts, images",
        "show": "the records of any TFRecord file, readable",
    },
    "Begin": {
        "demo": "all of it on a small ImageNet, without an account",
        "completion": "let your shell complete commands and options",
    },
}
"""What each command does, in at most 50 characters."""

OPTIONS: dict[str, tuple[str, ...]] = {
    "Where things are": ("raw", "output", "page", "boxes"),
    "What is fetched": ("source", "base_url", "cookies", "connections", "no_digest", "only"),
    "Which images": ("config", "classes", "relabel", "allow_incomplete", "skip_bad", "validation_boxes"),
    "What becomes of an image": ("check", "reencode", "resize", "max_side", "quality"),
    "Shards": ("train_shards", "validation_shards", "seed", "no_shuffle", "compression", "overwrite"),
    "Disk and order of reading": ("extract", "consume", "read_order", "memory", "dry_run"),
    "Checking": ("quick", "decode", "json_file"),
}
"""Of a command with many options: those of each section. What stands in none is about the run as a whole."""

_FEW = 8  # options need no sections


class SectionedCommand(click.Command):
    """A command whose options, where they are many, are listed in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections that it has options of."""
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        found = [(each.name, record) for each in options if (record := each.get_help_record(ctx))]
        if len(found) <= _FEW:
            return super().format_options(ctx, formatter)
        named = {name for names in OPTIONS.values() for name in names}
        for title, names in OPTIONS.items():
            _write(formatter, title, (record for name, record in found if name in names))
        _write(formatter, "The run", (record for name, record in found if name not in named))
        return None


class ExportCommand(SectionedCommand):
    """A command that lists the formats of exports."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each format before the options."""
        from imagenet_prep.exports import describe_formats

        _write(formatter, "Formats", describe_formats().items())
        super().format_options(ctx, formatter)


class SectionedGroup(click.Group):
    """The command line: its commands in the order of work."""

    command_class = SectionedCommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of commands, each command on a line."""
        for title, commands in COMMANDS.items():
            _write(formatter, title, commands.items())


def _write(formatter: click.HelpFormatter, title: str, lines: Iterable[tuple[str, str]]) -> None:
    rows = list(lines)
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
