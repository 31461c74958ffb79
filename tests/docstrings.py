"""first_paragraph: what the docstring of a public name says first."""

from __future__ import annotations


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring in one line; empty if there is none."""
    paragraph = (documented.__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split())
