"""init: a look at a folder gives a recipe that works as it stands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import kept_annotated  # noqa: F401 - enters its folders
import kept_in_archives  # noqa: F401 - the same
import kept_in_tables  # noqa: F401 - the same
import pytest
from kept_folders import KNOWN, Painter
from made_sets import ENGINE
from running import prep
from test_structures import save

from imagenet_prep import Layout, convert
from imagenet_prep.errors import UsageError
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.sources.slices import Reader
from imagenet_prep.stages.init import init


def proposed(folder: Path, output: Path, structure: str | None = None) -> RecipeDataset:
    """The plan of the recipe that is proposed; the first record of each split is made, too."""
    made = load(init(folder, output, ENGINE, structure=structure).recipe, None, ENGINE)
    for split in made.splits:
        item = split.catalog.item(0)
        assert split.recorder.record(item, split.catalog.read(0, Reader())).parts
    return made


def test_paths_are_relative_to_a_recipe_above_and_full_elsewhere(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A recipe beside its data can move with it; one that lies elsewhere finds it all the same."""
    save(tmp_path / "a b", "x/1.png", "y/1.png")
    assert 'folders: "a b"' in init(tmp_path / "a b", tmp_path / "r.yaml", ENGINE).text
    assert "folders: ." in init(tmp_path / "a b", tmp_path / "a b" / "r.yaml", ENGINE).text
    other = tmp_path_factory.mktemp("other") / "r.yaml"
    assert len(proposed(tmp_path / "a b", other).splits[0].catalog) == 2


def test_several_endings_in_a_recipe_elsewhere(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It has a pattern for each ending; patterns from several folders are refused."""
    save(tmp_path / "a", "1.png", "2.jpg", "x/3.png")
    recipe = tmp_path_factory.mktemp("other") / "r.yaml"
    for output in (recipe, tmp_path / "r.yaml"):
        assert len(proposed(tmp_path / "a", output, "unlabelled").splits[0].catalog) == 3
    recipe.write_text(f"source: {{files: ['{tmp_path}/a/*.png', '{tmp_path}/a/x/*.png']}}\n")
    with pytest.raises(UsageError, match=r"one folder"):
        load(recipe, None, ENGINE)


@pytest.mark.parametrize("name", ["b[1]", "[what?"])
@pytest.mark.parametrize("kind", ["flat", "deep", "classes", "one tar", "tars", "table"])
def test_names_with_signs_of_patterns(tmp_path: Path, name: str, kind: str) -> None:
    """A folder or tar called b[1] is proposed so that the command which init prints converts it,
    and nothing else.
    """
    data, recipe = tmp_path / "data" / name, tmp_path / "elsewhere" / "r.yaml"
    recipe.parent.mkdir()
    save(
        tmp_path / "data", "b1/other.png", "allx/other.png", "whatx/other.png"
    )  # such names match these
    if kind in ("one tar", "tars"):
        data.mkdir()
        for archive in [f"{name}.tar", "b1.tar"][: 1 + (kind == "tars")]:
            save(tmp_path / archive, f"a/{archive}.png", f"b/{archive}.png")
            subprocess.run(
                ["tar", "-C", tmp_path / archive, "-cf", data / archive, "a", "b"], check=True
            )
    else:
        names = {"deep": ("x/1.png", "x/y/2.png"), "classes": ("x/1.png", "y/2.png")}
        save(data, *names.get(kind, ("1.png", "2.png")))
    if kind == "table":
        (data / "labels.csv").write_text("file,label\n1.png,a\n2.png,b\n")
    init(data, recipe, ENGINE, structure="unlabelled" if kind == "deep" else None)
    summary = convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(recipe))
    assert [split.images for split in summary.splits] == [4 if kind == "tars" else 2]


def test_the_command(tmp_path: Path) -> None:
    """It writes FOLDER.yaml here, shows it, and says what to run next; a second time it refuses."""
    save(tmp_path / "flowers", "x/1.png", "y/1.png")
    done = prep("init", "flowers", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "flowers.yaml").read_text() in done.stdout
    assert "convert flowers-shards --config flowers.yaml" in done.stdout
    assert prep("init", "flowers", cwd=tmp_path).returncode == 2
    quiet = prep("init", "flowers", "--output", "other.yaml", "--quiet", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert (tmp_path / "other.yaml").exists()


@pytest.mark.parametrize(
    "name", ["food_101", "column_y", "coco_polygons", "camvid_of_fastai", "quick_draw"]
)
def test_each_key_has_a_comment(tmp_path: Path, name: str) -> None:
    """The recipe that init writes is the documentation."""
    KNOWN[name](Painter(tmp_path / "data"))
    text = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).text
    keys = [line for line in text.splitlines() if re.match(r"\w+:", line)]
    assert len(keys) >= 7
    assert [line for line in keys if "   # " not in line] == []
