"""Names of files are bytes: records, lists and manifests are the same in every locale,
and can be read back.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_server import CommandServer
from existing import existing
from made_boxes import mask
from made_sets import ENGINE
from made_tars import save

import imagenet_prep
from imagenet_prep import Layout, convert, export, verify
from imagenet_prep.demo import photographs
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.state.manifest import load_manifest

pytestmark = pytest.mark.once

NAMES = ("données/é.jpg", "données/鸟.jpg", "b/z.jpg", "b/a é.jpg")
RECIPES = {
    "folders": "source: {folders: src}\nshards: 2\n",
    "a folder of another name": (
        "source: {files: 'src/données/*.jpg'}\nshards: 1\nlabels: lists/é.txt\n"
    ),
    "a list to make": "input_file_pattern: src/*/*.jpg\nnum_shards: 1\nlabels: lists/all.txt\n"
    "manifest_file: made.txt\n",
    "a list": "source: {manifest: lists/names.txt}\nlabels: lists/all.txt\n",
    "masks": "source: {files: 'src/*/*.jpg'}\nmask: {folder: masks, match: stem}\nshards: 1\n",
}


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[..., None]]]:
    """What runs a command in each locale, which must end well: UTF-8, ASCII, and Latin-1 where a
    system can make one.

    Its Python starts in that locale, and forks for each command.
    """
    folder = tmp_path_factory.mktemp("locales")
    old = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    variables = {"utf-8": {"LC_ALL": "C.UTF-8"}, "ascii": {"LC_ALL": "C", **old}}
    if shutil.which("localedef"):
        name = "en_US.ISO-8859-1"
        made = subprocess.run(
            ["localedef", "-i", "en_US", "-f", "ISO-8859-1", folder / name], capture_output=True
        )
        if made.returncode == 0:
            variables["latin-1"] = {"LC_ALL": name, "LOCPATH": str(folder), **old}
    environments = {locale: {**os.environ, **more} for locale, more in variables.items()}
    servers = {locale: CommandServer(environment) for locale, environment in environments.items()}

    def run(locale: str, *words: object) -> None:
        called = [*map(str, words), "--workers", "1"]
        ended = servers[locale].run(called, folder, environments[locale], errors="backslashreplace")
        assert ended.returncode == 0, (locale, words, ended.stderr)

    yield {locale: functools.partial(run, locale) for locale in servers}
    for server in servers.values():
        server.close()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_records_are_the_same_in_every_locale(
    locales: dict[str, Callable[..., None]], tmp_path: Path, recipe: str
) -> None:
    """UTF-8, ASCII, Latin-1: the same shards, manifest and made list, and verify finds no fault."""
    for number, name in enumerate(NAMES):
        save(tmp_path / "src" / name, photographs.tiny(number))
        save(tmp_path / f"masks/{name[:-4]}.png", mask(16, 16))
    labels = [f"src/{name}:{1 + (name[0] == 'b')}\n" for name in NAMES]
    save(tmp_path / "lists/all.txt", "".join(labels).encode())
    save(tmp_path / "lists/é.txt", "".join(labels[:2]).encode())
    save(tmp_path / "lists/names.txt", "".join(f"src/{name}\n" for name in NAMES).encode())
    (tmp_path / "né.yaml").write_text(recipe, "utf-8")
    results = {}
    for locale, run in locales.items():
        out = tmp_path / locale
        run("convert", out, "--config", tmp_path / "né.yaml")
        run("verify", out)
        files = [
            *existing(out, "*-of-*"),
            out / "imagenet-prep/manifest.json",
            *list(tmp_path.glob("made.txt")),
        ]
        results[locale] = {path.name: path.read_bytes() for path in files}
        (tmp_path / "made.txt").unlink(missing_ok=True)
    assert all(files == results["utf-8"] for files in results.values()), results.keys()


@pytest.mark.parametrize("form", ["folders", "webdataset"])
def test_exports_are_the_same_in_every_locale(
    locales: dict[str, Callable[..., None]], tmp_path: Path, form: str
) -> None:
    """Names of images and of classes are no ASCII."""
    for number, name in enumerate(NAMES):
        save(tmp_path / "src" / name, photographs.tiny(number))
    (tmp_path / "a.yaml").write_text("source: {folders: src}\nshards: 1\n")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "a.yaml"))
    results = {}
    for locale, run in locales.items():
        run("export", form, tmp_path / "out", tmp_path / locale)
        files = [
            path
            for path in list((tmp_path / locale).rglob("*"))
            if path.is_file() and path.suffix != ".jsonl"
        ]
        results[locale] = {
            str(path.relative_to(tmp_path / locale)): path.read_bytes() for path in files
        }
    assert results["utf-8"]
    assert all(files == results["utf-8"] for files in results.values()), results.keys()


def test_a_folder_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    """Its manifest can be read back, by verify, open and export;
    its name and the recipe's are escaped there.
    """
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    for number in range(4):
        save(folder / "ab"[number % 2] / f"{number}.jpg", photographs.tiny(number))
    recipe = folder / os.fsdecode(b"\xe9.yaml")
    recipe.write_text("source: {files: '*/*.jpg'}\nshards: 1\n")
    layout = Layout(tmp_path / "out")
    for _ in range(2):
        convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
        manifest = load_manifest(layout.manifest_path)
        assert manifest is not None
        assert [source["name"] for source in manifest.sources.values()] == ["caf\\xe9"]
        assert manifest.dataset.name == "\\xe9"
    assert verify(layout, ENGINE).problems == ()
    assert len(imagenet_prep.open(tmp_path / "out", "train")) == 4
    export(layout, "webdataset", tmp_path / "tars", ENGINE)
