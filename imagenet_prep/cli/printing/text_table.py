"""print_table: columns of text, aligned."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.cli.terminal import say


def print_table(rows: Sequence[Sequence[str]], *, left: int, indent: str = "") -> None:
    """Print columns; the first ``left`` of them are aligned left."""
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    for row in rows:
        cells: list[str] = []
        for text, width in zip(row, widths, strict=True):
            is_left = len(cells) < left
            cell = text.ljust(width) if is_left else text.rjust(width)
            cells.append(cell)
        say(indent + "  ".join(cells))
