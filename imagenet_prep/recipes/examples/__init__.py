"""Recipes of well-known data sets, a YAML file each:
where the data is, its layout, and its published totals.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import command_line, program
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.refusals import refuse_existing, writing

_FOLDER = Path(__file__).parent


def list_examples() -> dict[str, str]:
    """The first line of each recipe, by its name."""
    texts = {
        path.stem: path.read_text()
        for path in sorted(_FOLDER.glob("*.yaml"), key=lambda path: path.stem)
    }
    return {name: text.partition("\n")[0].removeprefix("# ") for name, text in texts.items()}


def copy_example(name: str, target: Path | None) -> tuple[Path, str]:
    """Write one to a new file, by default NAME.yaml in the current folder; the file and its
    content.

    Raises:
        UsageError: there is no such recipe, or the file exists.
    """
    if name not in (known := list_examples()):
        near = difflib.get_close_matches(name, known, 1)
        expected = (
            f"expected {near[0]}, perhaps" if near else "expected a name of the list of examples"
        )
        raise UsageError(
            f"no example {name!r}", expected, command_line([program(), "init", "--list"])
        )
    target = target or Path(f"{name}.yaml")
    another = command_line([program(), "init", "--example", name, "--output", "FILE"])
    refuse_existing(target, another)
    text = (_FOLDER / f"{name}.yaml").read_text()
    with writing(target):
        save_bytes(target, text.encode())
    return target, text
