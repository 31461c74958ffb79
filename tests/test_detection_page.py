"""docs/howto/detection.md: its detector learns,
and its evaluation is that of pycocotools on the original file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_boxes import coco_set
from made_masks import mask_folders
from made_sets import ENGINE
from test_docs import ROOT, blocks
from test_snippets import run_lines
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep import Layout, convert
from imagenet_prep.recipes.recipe_set import RecipeSet

pytestmark = [pytest.mark.project, pytest.mark.once]

PAGE = (ROOT / "docs/howto/detection.md").read_text()
EXAMPLES = ROOT / "docs/examples"
SHAPES, TRAIN, SCORE = (
    (EXAMPLES / f"{name}.py").read_text()
    for name in ("make_shapes", "train_detector", "score_as_coco")
)
READING, MASKS = blocks(PAGE, "python")
SHELL = blocks(PAGE, "sh")[0]
FEWER = {"EPOCHS = 8\n": "EPOCHS = 2\n"}
"""Variables of the page with other values, for a test that takes seconds."""
FEWER_IMAGES = {"range(1, 301)": "range(1, 113)", "range(301, 361)": "range(301, 313)"}


@pytest.fixture(scope="module", autouse=True)
def _load(torch: Any) -> None:
    """Import torchvision: its models need operators that this machine may lack."""
    import_torchvision()


def changed(program: str, values: Mapping[str, str]) -> str:
    """A program with other values, each of which it has once."""
    for before, after in values.items():
        assert program.count(before) == 1
        program = program.replace(before, after)
    return program


def defined(program: str) -> dict[str, Any]:
    """The names that a program defines; it is not run as one."""
    names: dict[str, Any] = {"__name__": "of_the_page"}
    exec(program, names)
    return names


def test_the_detector_of_the_page_learns(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same program with fewer images and epochs:
    its loss falls, and its detections are better than chance.
    """
    (tmp_path / "make_shapes.py").write_text(changed(SHAPES, FEWER_IMAGES))
    run_lines(SHELL.replace("python ", f"{sys.executable} "), tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(READING, {})
    assert capsys.readouterr().out.startswith("8 BoundingBoxes(")
    page = defined(changed(TRAIN, FEWER))
    page["main"]()
    printed = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"^epoch \d: loss ([\d.]+)$", printed, re.M)]
    assert len(losses) == 2
    assert losses[-1] < 0.8 * losses[0]
    precision = re.search(r"^AP ([\d.]+), AP at 0.5 ([\d.]+)$", printed, re.M)
    assert precision
    assert float(precision[2]) > 0.1
    network = page["make_network"](3)
    network.load_state_dict(torch.load("detector.pt"))


def guesses(torch: Any, dataset: Any) -> Callable[[Sequence[Any]], list[dict[str, Any]]]:
    """A network's stand-in: the objects of each image in order, some moved,
    of another class, doubled or missed.
    """
    draw, targets = np.random.default_rng(38), iter([target for _, target in dataset])

    def predict(images: Sequence[Any]) -> list[dict[str, Any]]:
        found = []
        for _ in images:
            target = next(targets)
            boxes = target["boxes"].numpy().repeat(3, axis=0)
            boxes = boxes + draw.normal(0, 1 + 3 * draw.random((len(boxes), 1)), boxes.shape)
            boxes = np.concatenate(
                [np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1
            )
            labels = target["labels"].numpy().repeat(3)
            labels = np.where(draw.random(len(labels)) < 0.2, 18, labels)
            kept = draw.random(len(labels)) < 0.7
            found.append(
                {
                    "boxes": torch.tensor(boxes[kept], dtype=torch.float32),
                    "labels": torch.tensor(labels[kept]),
                    "scores": torch.tensor(draw.random(int(kept.sum())), dtype=torch.float32),
                }
            )
        return found

    return predict


MEASURES = (
    "map",
    "map_50",
    "map_75",
    "map_small",
    "map_medium",
    "map_large",
    "mar_1",
    "mar_10",
    "mar_100",
)


def test_the_evaluation_of_the_page_is_that_of_pycocotools(torch: Any, tmp_path: Path) -> None:
    """Nine measures of made predictions on 30 images, with crowds,
    areas and images without a box.
    """
    from imagenet_prep.torch import DetectionDataset

    coco_set(tmp_path, 30)
    boxes = "annotations/instances_train2017.json"
    (tmp_path / "r.yaml").write_text(f"source: {{files: train2017/*}}\nboxes: {{coco: {boxes}}}\n")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "r.yaml"))
    dataset = DetectionDataset(imagenet_prep.open(tmp_path / "out", "train"))
    ours = defined(TRAIN)["evaluate"](guesses(torch, dataset), dataset)
    theirs = defined(SCORE)["score"](guesses(torch, dataset), dataset, str(tmp_path / boxes))
    assert [float(ours[name]) for name in MEASURES] == pytest.approx(theirs[:9].tolist(), abs=1e-6)
    assert 0.05 < theirs[0] < 0.95


def test_the_loop_of_the_page_for_masks_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batches of one size; 255 is no class."""
    mask_folders(tmp_path, "images/{}.jpg", "masks/{}.png", 4)
    (tmp_path / "r.yaml").write_text("source: {files: images/*}\nmask: {folder: masks}\n")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "r.yaml"))
    defined(MASKS.replace("DATA_DIR", str(tmp_path / "out")))
    line = "torch.Size([2, 3, 64, 64]) torch.Size([2, 64, 64]) 3.04"
    assert capsys.readouterr().out.splitlines() == [line, line]
