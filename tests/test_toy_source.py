"""A kind of source is one new file."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from made_boxes import photograph
from made_tars import save
from running import command, prep

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.recipes.source_kinds import source_kinds

TOY = '''
"""Databases of SQLite whose table ``images`` names images with their labels."""

import sqlite3

from imagenet_prep.recipes.named_files import archives_by_split, origin_of
from imagenet_prep.recipes.row_files import list_rows
from imagenet_prep.recipes.row_source import TableRow, find_roles, gather
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind


def _list_inputs(file, key, root, engine):
    databases, base = archives_by_split(file, key, root, engine)
    rows = []
    for split, paths in databases.items():
        for path in paths:
            for name, label in sqlite3.connect(path).execute("SELECT file_name, label FROM images"):
                row = {"file_name": name, "label": label}
                rows.append(TableRow(row, f"{path}, {name}", str(path.parent), split))
    roles = find_roles(["file_name", "label"], str(base), None, file.recipe.source.label)
    listed = gather(rows, roles, is_text=False)
    return list_rows(file, listed, root, engine, origin_of(databases, base))


KIND = SourceKind("sqlite", 200, BySplit, _list_inputs, options=("label",), has_rows=True)
'''

ROOT = Path(imagenet_prep.__file__).parent


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the package, an image and a database that names it."""
    shutil.copytree(ROOT, tmp_path / "imagenet_prep")
    save(tmp_path / "a.jpg", photograph(80, 40))
    with sqlite3.connect(tmp_path / "images.db") as database:
        database.execute("CREATE TABLE images (file_name, label)")
        database.execute("INSERT INTO images VALUES ('a.jpg', 'dog')")
    save(tmp_path / "recipe.yaml", "source: {sqlite: images.db}\nshards: 1\n")
    return tmp_path


def test_a_source_is_one_new_file(copied: Path) -> None:
    """With it the recipe has a key, and convert and verify read its rows."""
    save(copied / "imagenet_prep/recipes/source_kinds/from_sqlite.py", TOY)
    command("convert", "out", "--config", "recipe.yaml", cwd=copied, PYTHONPATH=str(copied))
    command("verify", "out", cwd=copied, PYTHONPATH=str(copied))
    (record,) = records.read(str(copied / "out/train-*"), text={"image/class/text"})
    assert record["image/class/text"] == "dog"


def test_without_it_the_key_is_unknown(copied: Path) -> None:
    """The error names the key."""
    refused = prep("convert", "out", "--config", "recipe.yaml", cwd=copied, PYTHONPATH=str(copied))
    assert refused.returncode == 2
    assert "source.sqlite: no such key" in refused.stderr


def test_the_page_has_every_kind() -> None:
    """The table of docs/recipes.md names each key of the registry, in the order of the ranks."""
    text = (ROOT.parent / "docs/recipes.md").read_text()
    table = text[
        text.index("| `source: {folders: F}`") : text.index("| `source: {imagenet: true}`")
    ]
    named = re.findall(r"^\| `source: \{(\w+):|, `(\w+)`", table, re.MULTILINE)
    assert [first or further for first, further in named] == list(source_kinds())
