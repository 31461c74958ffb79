"""docs/architecture.md names rooms and modules that exist, and every room of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from existing import existing

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "imagenet_prep"
PAGE = (ROOT / "docs" / "architecture.md").read_text()

WIDEST = 96
"""Characters of a line of code on a page: more scroll at 1280 pixels."""


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def code(text: str) -> list[str]:
    """The lines within fences."""
    return [line for block in text.split("```")[1::2] for line in block.split("\n")[1:]]


def rooms() -> set[str]:
    """The folders of the package, and its modules that are not in a folder."""
    packages = {path.parent.name for path in existing(PACKAGE, "*/__init__.py")}
    modules = {path.stem for path in existing(PACKAGE, "[a-z]*.py")}
    return packages | modules


def modules_named(text: str) -> set[str]:
    """The paths within backticks, such as `init/inspection`, or `formats/`."""
    return set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*/?(?:\.py)?)`", text))


def is_there(name: str) -> bool:
    """Whether a module or a room is in the package, in the room of recipes, or next to both."""
    name = name.rstrip("/").removesuffix(".py")
    folders = (PACKAGE, PACKAGE / "recipes", ROOT)
    return any((folder / name).is_dir() or (folder / f"{name}.py").is_file() for folder in folders)


def test_the_import_rule_has_every_room() -> None:
    """The rule lists each folder and each module at the top once, and no other."""
    listed = re.findall(r"[a-z0-9_]+", " ".join(code(section("The import rule"))))
    assert sorted(listed) == sorted(rooms())


def test_the_way_of_an_image_names_modules_that_exist() -> None:
    """The way from a folder to records names modules that exist."""
    paths = modules_named(section("From a folder to records"))
    names = {path for path in paths if "/" in path}
    assert len(names) > 8
    assert [name for name in sorted(names) if not is_there(name)] == []


@pytest.mark.parametrize("title", ["The nouns", "Where to add things", "The import rule"])
def test_paths_on_the_page_exist(title: str) -> None:
    """A path with a folder, such as `sources/slices.py`, is one of the package."""
    names = {name for name in modules_named(section(title)) if "/" in name}
    assert [name for name in sorted(names) if not is_there(name)] == []


def test_a_path_that_does_not_exist_is_seen() -> None:
    """The check fails for a module and a room that are gone."""
    names = modules_named("`sources/no_such_module.py`, `no_room/`, `sources/slices.py`")
    assert [name for name in sorted(names) if not is_there(name)] == [
        "no_room/",
        "sources/no_such_module.py",
    ]


def test_code_on_pages_fits() -> None:
    """No line of code on a page is wider than a screen of 1280 pixels shows."""
    pages = [ROOT / "README.md", *existing(ROOT / "docs", "**/*.md")]
    wide = []
    for page in pages:
        for line in code(page.read_text()):
            if len(line) > WIDEST:
                wide.append(f"{page.relative_to(ROOT)}: {line}")
    assert wide == []
