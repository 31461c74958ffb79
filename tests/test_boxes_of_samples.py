"""Boxes in a column of Parquet files, tags of CVAT, and samples of FiftyOne:
what they give, and what is refused.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from made_folders import picture, write

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.stages.init import init

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ENGINE = make_engine("threads", 1)
BOX = [1.0, 2.0, 3.0, 4.0]


def parquet_file(objects: Any, names: list[str], column: str = "objects") -> bytes:
    """A file of one image and its objects; ``names`` are those of the classes."""
    rows = pa.table({"image": [{"bytes": picture("a.jpg"), "path": "a.jpg"}], column: [objects]})
    features = {column: {"category": {"names": names, "_type": "ClassLabel"}}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    stream = io.BytesIO()
    pq.write_table(rows.replace_schema_metadata(metadata), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "objects", [{"bbox": [BOX], "category": [1]}, [{"bbox": BOX, "category": 1}]]
)
def test_boxes_have_the_numbers_and_names_of_their_file(tmp_path: Path, objects: Any) -> None:
    """A struct of lists and a list of structs give the same boxes;
    an unused first class keeps its number.
    """
    write(tmp_path, **{"train.parquet": parquet_file(objects, ["cat", "dog"])})
    (tmp_path / "r.yaml").write_text("source: {parquet: train.parquet}\n")
    found = load(tmp_path / "r.yaml", None, ENGINE)
    assert "labels of boxes: dog is 1" in str(found)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"a.parquet": ("faces", {"bbox": [BOX]}, [])}, "the column faces: not read"),
        (
            {
                "a.parquet": ("objects", {"bbox": [BOX], "category": [0]}, ["cat"]),
                "b.parquet": ("objects", {"bbox": [BOX], "category": [0]}, ["dog"]),
            },
            "class 0 of the boxes is cat in .*a.parquet, but dog in .*b.parquet\n",
        ),
    ],
    ids=["boxes without classes", "classes of other names"],
)
def test_boxes_that_would_be_lost_or_slip_are_refused(
    tmp_path: Path, files: Any, problem: str
) -> None:
    """Boxes without classes are a loss that init names;
    a number that means two classes is refused.
    """
    contents = {
        name: parquet_file(objects, names, column)
        for name, (column, objects, names) in files.items()
    }
    write(tmp_path / "data", **contents)
    with pytest.raises(InputError, match=problem):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_the_advice_on_a_box_that_leads_out_works_without_annotations(tmp_path: Path) -> None:
    """``boxes_outside`` is a key for the boxes of Parquet files too."""
    content = parquet_file({"bbox": [[1.0, 2.0, 300.0, 4.0]], "category": [1]}, ["cat", "dog"])
    write(tmp_path, **{"train.parquet": content})
    recipe = tmp_path / "r.yaml"
    recipe.write_text("source: {parquet: train.parquet}\n")
    with pytest.raises(InputError, match=r"write in the recipe: boxes_outside: clip"):
        load(recipe, None, ENGINE)
    recipe.write_text("source: {parquet: train.parquet}\nboxes_outside: clip\n")
    assert any("1 impossible box clipped" in note for note in load(recipe, None, ENGINE).notes)


def test_a_class_beyond_the_names_counts_them(tmp_path: Path) -> None:
    """The names may be those of the file; the recipe of this one has no ``names``."""
    write(tmp_path, **{"a.parquet": parquet_file({"bbox": [BOX], "category": [3]}, ["cat"])})
    (tmp_path / "r.yaml").write_text("source: {parquet: a.parquet}\n")
    with pytest.raises(InputError) as caught:
        load(tmp_path / "r.yaml", None, ENGINE)
    assert caught.value.what.endswith("row 1: the class of a box is 3")
    assert caught.value.detail == "expected 0: only 1 class has a name, and the first is class 0"


def test_images_without_a_tag_are_a_question(tmp_path: Path) -> None:
    """CVAT's images without a tag are left out only if the user says so."""
    tags = "".join(
        f'<image id="{n}" name="{n}.jpg"><tag label="{"ab"[n % 2]}"/></image>' for n in range(4)
    )
    text = f"<annotations><version>1.1</version>{tags}</annotations>"
    images = {f"{number}.jpg": picture("a.jpg") for number in range(5)}
    write(tmp_path / "data", **{"annotations.xml": text.encode(), **images})
    with pytest.raises(InputError, match=r"1 image .*: 4\.jpg"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_two_fields_of_boxes_are_refused(tmp_path: Path) -> None:
    """Boxes of two models in FiftyOne's samples.json: neither is taken by itself."""
    detections = {"detections": [{"label": "cat", "bounding_box": [0.1, 0.1, 0.2, 0.2]}]}
    sample = {"filepath": "a.jpg", "tags": [], "model_1": detections, "model_2": detections}
    write(
        tmp_path / "data",
        **{"a.jpg": picture("a.jpg"), "samples.json": json.dumps({"samples": [sample]}).encode()},
    )
    with pytest.raises(InputError, match="several fields with detections: model_1, model_2"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
