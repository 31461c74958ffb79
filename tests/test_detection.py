"""Data sets of objects and masks for PyTorch:
targets are those of the annotations, in torchvision's form.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_boxes import NAMES, coco_set, photograph, voc_set, yolo_set
from made_masks import coco_outlines, png
from made_sets import ENGINE, flip
from made_tars import save
from PIL import Image
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep import Layout, convert, records
from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet

torch: Any = None
tv_tensors: Any = None
v2: Any = None
DetectionDataset: Any = None
SegmentationDataset: Any = None
Loader: Any = None
collate_detection: Any = None


@pytest.fixture(scope="module", autouse=True)
def _load(torch: Any) -> None:
    """Import torch, torchvision and their data sets, once the tests of this module run."""
    import_torchvision()
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    import imagenet_prep.torch as ours

    globals().update(torch=torch, tv_tensors=tv_tensors, v2=v2)
    globals().update({name: getattr(ours, name) for name in ours.__all__})


SOURCES = {
    "outlines": (
        lambda folder: coco_outlines(folder, 12),
        "train2017/*",
        "coco: instances_train2017.json",
    ),
    "coco": (lambda folder: coco_set(folder, 30), "train2017/*", "coco: instances_train2017.json"),
    "voc": (voc_set, "JPEGImages/*", "voc: Annotations"),
    "yolo": (yolo_set, "images/train/*", "yolo: labels, names: data.yaml"),
}


def make(folder: Path, recipe: str) -> Path:
    """The shards of a recipe, in folder/out."""
    (folder / "recipe.yaml").write_text(recipe)
    convert(Layout(folder / "out"), ENGINE, dataset=RecipeSet.read(folder / "recipe.yaml"))
    return folder / "out"


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The folders of four sets with objects: `data` is the source, `out` has the shards.
    Read only.
    """
    folder = tmp_path_factory.mktemp("objects")
    for name, (write, files, boxes) in SOURCES.items():
        write(folder / name)
        masks = ", polygons: masks" if name == "outlines" else ""
        boxes = boxes.replace("coco: ", "coco: annotations/")
        make(folder / name, f"source: {{files: {files}}}\nboxes: {{{boxes}{masks}}}\n")
    return {name: folder / name for name in SOURCES}


def opened(folder: Path) -> Any:
    """The records of a set."""
    return imagenet_prep.open(folder / "out", "train")


def annotations_of(folder: Path) -> Any:
    """The annotations as pycocotools reads them."""
    from pycocotools.coco import COCO

    return COCO(str(folder / "annotations/instances_train2017.json"))


def shapes(target: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a target."""
    return {
        name: tuple(value.shape)
        for name, value in target.items()
        if isinstance(value, torch.Tensor)
    }


# as the annotations -------------------------------------------------------------------------------


def test_targets_are_those_of_coco(sets: Mapping[str, Path]) -> None:
    """Boxes in pixels, ids of categories, masks of pycocotools, areas,
    crowds, and the pixels of Pillow.
    """
    folder = sets["outlines"]
    coco, dataset = annotations_of(folder), DetectionDataset(opened(folder))
    assert dataset.class_names == {1: "person", 10: "traffic light", 18: "dog"}
    assert dataset.num_classes == 19
    assert {target["image_id"] for _, target in dataset} == set(coco.getImgIds())
    for image, target in dataset:
        facts = coco.loadImgs([target["image_id"]])[0]
        objects = coco.loadAnns(coco.getAnnIds([target["image_id"]], iscrowd=None))
        size = facts["height"], facts["width"]
        with Image.open(folder / "train2017" / facts["file_name"]) as picture:
            assert (image.permute(1, 2, 0).numpy() == np.asarray(picture)).all()
        assert isinstance(image, tv_tensors.Image)
        assert isinstance(target["boxes"], tv_tensors.BoundingBoxes)
        assert isinstance(target["masks"], tv_tensors.Mask)
        assert (target["boxes"].format.value, target["boxes"].canvas_size) == ("XYXY", size)
        corners = [(x, y, x + w, y + h) for x, y, w, h in (each["bbox"] for each in objects)]
        assert target["boxes"].numpy() == pytest.approx(np.array(corners).reshape(-1, 4), abs=1e-4)
        assert target["labels"].tolist() == [each["category_id"] for each in objects]
        assert target["iscrowd"].tolist() == [each["iscrowd"] for each in objects]
        assert target["area"].tolist() == [each["area"] for each in objects]
        assert all(
            (target["masks"][k].numpy() == coco.annToMask(each)).all()
            for k, each in enumerate(objects)
        )
        types = {
            "boxes": torch.float32,
            "labels": torch.int64,
            "masks": torch.uint8,
            "area": torch.float32,
        }
        assert {name: target[name].dtype for name in types} == types
        count = len(objects)
        lengths = dict.fromkeys(("labels", "area", "iscrowd"), (count,))
        assert shapes(target) == {"boxes": (count, 4), "masks": (count, *size), **lengths}
    assert min(len(target["boxes"]) for _, target in dataset) == 0


def test_targets_of_other_formats(sets: Mapping[str, Path]) -> None:
    """VOC has difficult objects and names of files; YOLO's classes are 1, 2, 3;
    neither has masks or areas.
    """
    voc, yolo = (DetectionDataset(opened(sets[name])) for name in ("voc", "yolo"))
    assert voc.class_names == dict(enumerate(sorted(NAMES), 1)) or set(
        voc.class_names.values()
    ) < set(NAMES)
    assert yolo.class_names == dict(enumerate(NAMES, 1))
    assert [*voc[0][1]] == ["boxes", "labels", "image_id", "difficult"]
    assert [*yolo[0][1]] == ["boxes", "labels", "image_id"]
    for dataset in (voc, yolo):
        for number, (_, target) in enumerate(dataset):
            features = dataset.records[number].features
            texts = [str(text, "utf-8") for text in features["image/object/class/text"]]
            assert [dataset.class_names[label] for label in target["labels"].tolist()] == texts
            assert target["image_id"] == str(features["image/source_id"], "utf-8")
    marks = [mark for _, target in voc for mark in target["difficult"].tolist()]
    assert set(marks) == {0, 1}
    without = DetectionDataset(opened(sets["voc"]), leave_out=["difficult"])
    assert sum(len(target["labels"]) for _, target in without) == marks.count(0)


def test_crowds_are_left_out_with_their_masks(sets: Mapping[str, Path]) -> None:
    """All values of the other objects stay, in their order; masks=False decodes none."""
    records = opened(sets["outlines"])
    left, crowds = DetectionDataset(records, leave_out=["crowd"]), 0
    for (_, whole), (_, target) in zip(DetectionDataset(records), left, strict=True):
        kept = whole["iscrowd"] == 0
        crowds += int((~kept).sum())
        assert all(torch.equal(target[name], whole[name][kept]) for name in shapes(whole))
    assert crowds > 0
    assert "masks" not in DetectionDataset(records, masks=False)[1][1]


def test_objects_of_imagenet_have_the_label_of_their_image(sound: Layout) -> None:
    """Labels 1 to 1000, as in records, not 0 to 999 as ImageDataset's;
    images without a box have empty tensors.
    """
    dataset = DetectionDataset(imagenet_prep.open(sound.data_dir, "train"))
    assert (dataset.num_classes, dataset.class_names[1]) == (1001, "n01440764")
    counts = set()
    for number, (image, target) in enumerate(dataset):
        record, boxes = dataset.records[number], target["boxes"]
        counts.add(len(boxes))
        assert shapes(target) == {"boxes": (len(boxes), 4), "labels": (len(boxes),)}
        assert set(target["labels"].tolist()) <= {record.label}
        width, height = image.shape[2], image.shape[1]
        expected = [
            (b.xmin * width, b.ymin * height, b.xmax * width, b.ymax * height) for b in record.boxes
        ]
        assert boxes.numpy() == pytest.approx(np.array(expected).reshape(-1, 4), abs=1e-4)
        assert target["image_id"] == record.filename
    assert {0, 1} <= counts


def test_raw_data_gives_the_same_targets(sets: Mapping[str, Path]) -> None:
    """Before any shard exists, too: names of classes come from the recipe."""
    folder = sets["outlines"]
    raw = imagenet_prep.open(folder / "none", "train", source="raw", config=folder / "recipe.yaml")
    first, second = DetectionDataset(raw), DetectionDataset(opened(folder))
    assert first.class_names == second.class_names
    for (_, one), (_, other) in zip(first, second, strict=True):
        assert one["image_id"] == other["image_id"]
        assert all(torch.equal(one[name], other[name]) for name in shapes(other))


# numbers of classes -------------------------------------------------------------------------------


def test_classes_that_count_from_0_get_labels_from_1(tmp_path: Path) -> None:
    """0 is the background: by the manifest, and in the raw data."""
    yolo_set(tmp_path)
    boxes = "boxes: {yolo: labels, names: data.yaml, first_label: 0}"
    make(tmp_path, f"source: {{files: images/train/*}}\n{boxes}\n")
    dataset = DetectionDataset(opened(tmp_path))
    assert dataset.class_names == dict(enumerate(NAMES, 1))
    for number, (_, target) in enumerate(dataset):
        numbers = dataset.records[number].features["image/object/class/label"]
        assert target["labels"].tolist() == [label + 1 for label in numbers]


BOX = {"xmin": [0.25], "ymin": [0.5], "xmax": [0.75], "ymax": [1.0]}


def foreign(folder: Path, *several: Mapping[str, Any]) -> Any:
    """Records of another program: an image of 40 x 20 pixels with these features,
    whose names lack "image/".
    """
    examples = []
    for number, features in enumerate(several):
        example: dict[str, Any] = {
            "image/encoded": photograph(40, 20),
            "image/filename": f"{number}.jpg",
        }
        corners = {edge: features.get(edge, values) for edge, values in BOX.items()}
        example |= {
            f"image/object/bbox/{edge}": values
            for edge, values in corners.items()
            if values is not None
        }
        example |= {f"image/{name}": value for name, value in features.items() if name not in BOX}
        examples.append(example)
    (folder / "out").mkdir()
    records.write(folder / "out/train-00000-of-00001", examples)
    return opened(folder)


LABEL, TEXT, MASK = "object/class/label", "object/class/text", "object/mask"


def test_records_of_another_program(tmp_path: Path) -> None:
    """Numbers without names; boxes that are rounded out of the image are cut,
    those without area are left out.
    """
    two = {
        "xmin": [-0.001, 0.5],
        "ymin": [0.0, 0.1],
        "xmax": [1.001, 0.5],
        "ymax": [1.0, 0.9],
        LABEL: [3, 4],
    }
    dataset = DetectionDataset(foreign(tmp_path, {LABEL: [7]}, two))
    assert dataset[0][1]["boxes"].tolist() == [[10, 10, 30, 20]]
    assert dataset[0][1]["labels"].tolist() == [7]
    assert dataset[1][1]["boxes"].tolist() == [[0, 0, 40, 20]]
    assert dataset[1][1]["labels"].tolist() == [3]
    assert dataset.class_names == {}
    with pytest.raises(UsageError, match="class names of the train records are not known"):
        _ = dataset.num_classes


def test_each_object_keeps_its_own_mask(tmp_path: Path) -> None:
    """Of three objects, the first is a crowd, the second has no area:
    the mask of the third is left.
    """
    pixels = np.zeros((3, 20, 40), np.uint8)
    pixels[0, :5], pixels[1, 5:9], pixels[2, 9:] = 1, 1, 1
    corners = {
        "xmin": [0.0, 0.5, 0.1],
        "ymin": [0.0, 0.5, 0.2],
        "xmax": [1.0, 0.5, 0.9],
        "ymax": [0.2, 0.6, 1.0],
    }
    features = {
        **corners,
        LABEL: [1, 2, 3],
        MASK: [png(mask) for mask in pixels],
        "object/is_crowd": [1, 0, 0],
    }
    _, target = DetectionDataset(foreign(tmp_path, features), leave_out=["crowd"])[0]
    assert (target["labels"].tolist(), target["iscrowd"].tolist()) == ([3], [0])
    assert (target["masks"].numpy() == pixels[2:]).all()


def test_names_without_numbers(tmp_path: Path) -> None:
    """They are numbered in the order of class_names, which also replaces numbers;
    without it the error names it.
    """
    found = foreign(tmp_path, {TEXT: ["dog"]}, {TEXT: ["cat"], LABEL: [9]})
    dataset = DetectionDataset(found, class_names=["cat", "dog"])
    assert [target["labels"].tolist() for _, target in dataset] == [[2], [1]]
    assert (dataset.class_names, dataset.num_classes) == ({1: "cat", 2: "dog"}, 3)
    with pytest.raises(InputError, match=r"(?s)record 0 .*'dog'.*class_names=\["):
        DetectionDataset(found)[0]
    with pytest.raises(InputError, match=r"(?s)'dog'.*expected .*cat"):
        DetectionDataset(found, class_names=["cat"])[0]


FAULTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "classes from 0": (
        {LABEL: [0]},
        {},
        "an object of class 0.*expected a whole number from 1 up.*first_label=0",
    ),
    "classes from 3, and a first label above it": (
        {LABEL: [3]},
        {"first_label": 5},
        "class 3.*expected a whole number from 5 up\nif classes count from 3: .*first_label=3",
    ),
    "a negative number, and a first label that is 0 already": (
        {LABEL: [-1]},
        {"first_label": 0},
        "class -1\nexpected a whole number from 0 up\nwrite the records again, ",
    ),
    "a name that class_names lacks": (
        {TEXT: ["dog"], LABEL: [1]},
        {"class_names": ["cat"]},
        "expected cat\nadd 'dog' to class_names",
    ),
    "no class": (
        {},
        {},
        "has no image/object/class/text.*expected 1.*that has the class of each object",
    ),
    "no boxes": ({**dict.fromkeys(BOX), LABEL: []}, {}, "has no feature image/object/bbox/xmin"),
    "corners that differ in number": (
        {"ymax": [0.5, 1.0], LABEL: [1]},
        {},
        "has lists of different lengths",
    ),
    "labels that differ in number": (
        {LABEL: [1, 2]},
        {},
        "2 values of image/object/class/label.*expected 1",
    ),
    "corners in pixels": (
        {"xmax": [30.0], LABEL: [1]},
        {},
        "has the box 0.25, 0.5, 30, 1.*from 0 to 1; it may be in pixels: the image has [0-9]+ x [0-9]+\n"
        "in the program that wrote the records, divide x by the width",
    ),
    "swapped corners": (
        {"xmin": [0.9], LABEL: [1]},
        {},
        "has the box 0.9, 0.5, 0.75, 1\nexpected .*, the upper left corner first\nswap the corners",
    ),
    "one label for two objects": (
        {**{edge: [0.0, 0.0] for edge in BOX}, LABEL: [1]},
        {},
        "has 1 value of image/object/class/label.*expected 2, one per object",
    ),
    "not a number": (
        {"xmin": [float("nan")], LABEL: [1]},
        {},
        "the box nan.*from the images, with a recipe$",
    ),
    "numbers for masks": ({LABEL: [1], MASK: [1]}, {}, "mask holds numbers.expected PNG files"),
    "texts for corners": ({"xmin": ["a"], LABEL: [1]}, {}, "image/object/bbox/xmin holds bytes"),
    "fractions for classes": (
        {LABEL: [1.5]},
        {},
        "an object of class 1.5.*expected a whole number from 1 up",
    ),
    "numbers alone, and names given": (
        {LABEL: [1]},
        {"class_names": ["cat"]},
        "it has class numbers: image/object/class/label\nleave out class_names",
    ),
    "numbers for names": (
        {TEXT: [5]},
        {"class_names": ["cat"]},
        "text holds numbers\nexpected texts",
    ),
    "texts for numbers": ({LABEL: ["a"]}, {}, "image/object/class/label holds texts"),
    "no masks": ({LABEL: [1]}, {"masks": True}, "has no image/object/mask"),
    "a mask of another size": (
        {LABEL: [1], MASK: [png(np.ones((20, 41), np.uint8))]},
        {},
        "a mask of 41 x 20 pixels.*expected the size of its image, 40 x 20",
    ),
    "a damaged mask": (
        {LABEL: [1], MASK: [png(np.ones((20, 40), np.uint8))[:-20]]},
        {},
        "its mask can't be read",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_objects_names_its_record(tmp_path: Path, name: str) -> None:
    """The error has file, record and byte, what is wrong and what is expected."""
    features, options, words = FAULTS[name]
    with pytest.raises(InputError, match=rf"(?s)train-00000-of-00001: record 0 .*{words}"):
        DetectionDataset(foreign(tmp_path, features), **options)[0]


def test_numbers_from_0_of_another_program(tmp_path: Path) -> None:
    """first_label says which number becomes label 1."""
    assert DetectionDataset(foreign(tmp_path, {LABEL: [0]}), first_label=0)[0][1][
        "labels"
    ].tolist() == [1]


def test_large_numbers_of_classes_stay_exact(tmp_path: Path) -> None:
    """Also those that a float would round."""
    number = 2**53 + 1
    assert DetectionDataset(foreign(tmp_path, {LABEL: [number]}))[0][1]["labels"].tolist() == [
        number
    ]


def test_a_class_that_the_set_lacks_is_refused(sets: Mapping[str, Path], tmp_path: Path) -> None:
    """A label that no class has would be an index beyond the network's outputs."""
    dataset = DetectionDataset(opened(sets["yolo"]), first_label=2)
    with pytest.raises(InputError, match="an object of class 1") as caught:
        list(dataset)
    assert caught.value.detail == "expected one of 2, 3"
    (first_label,) = re.findall("leave out first_label, or .*: ([0-9]+)", caught.value.hint)
    assert list(DetectionDataset(dataset.records, first_label=int(first_label)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"transforms": 5}, "transforms=5"),
        ({"leave_out": "crowd"}, r"leave_out=\['crowd'\]"),
        ({"leave_out": ["crowds"]}, "leave_out"),
        ({"leave_out": None}, "leave_out=None"),
        ({"leave_out": [["crowd"]]}, "leave_out"),
        ({"masks": "yes"}, "masks='yes'"),
        ({"class_names": "cat"}, "class_names='cat'"),
        ({"class_names": []}, "one or more different texts"),
        ({"class_names": ["cat", 5]}, "class_names"),
        ({"class_names": ["cat", "cat"]}, "different"),
        ({"class_names": ["cat"], "first_label": 1}, "first_label=1"),
        ({"first_label": -1}, "first_label=-1"),
    ],
)
def test_wrong_arguments_are_refused(
    sets: Mapping[str, Path], arguments: Mapping[str, Any], words: str
) -> None:
    """With the argument as it is, and what is right."""
    with pytest.raises(UsageError, match=words):
        DetectionDataset(opened(sets["voc"]), **arguments)


def test_a_folder_is_no_set_of_records(tmp_path: Path) -> None:
    """The hint has the call."""
    for kind in (DetectionDataset, SegmentationDataset):
        with pytest.raises(
            UsageError, match=rf"{kind.__name__}\(imagenet_prep.open\('/data/x', 'train'\)\)"
        ):
            kind("/data/x")


def test_without_torchvision_the_error_says_so(
    sets: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing, or made for another PyTorch: two errors with two remedies."""
    found = opened(sets["voc"])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torchvision", None)
        with pytest.raises(
            UsageError, match=r"(?s)DetectionDataset needs torchvision.*pip install torchvision"
        ):
            DetectionDataset(found)
    save(
        tmp_path / "torchvision/__init__.py",
        "raise RuntimeError('operator torchvision::nms does not exist')",
    )
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            patch.delitem(sys.modules, name)
        patch.syspath_prepend(tmp_path)
        with pytest.raises(
            UsageError,
            match=r"(?s)can't be imported: operator.*install torch and torchvision together",
        ):
            SegmentationDataset(found)


# transforms ---------------------------------------------------------------------------------------


def test_transforms_change_image_and_target(sets: Mapping[str, Path]) -> None:
    """The same as v2 alone gives for the same random numbers;
    objects that are cropped away go with their values.
    """
    change = v2.Compose(
        [v2.RandomHorizontalFlip(), v2.RandomCrop((36, 38)), v2.ToDtype(torch.float32, scale=True)]
    )
    found, gone = opened(sets["outlines"]), 0
    dataset = DetectionDataset(found, change)
    for number, (image, target) in enumerate(DetectionDataset(found)):
        torch.manual_seed(number)
        expected_image, expected = change(image, target)
        torch.manual_seed(number)
        our_image, ours = dataset[number]
        boxes = expected["boxes"]
        kept = ((boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])).numpy()
        gone += int((~kept).sum())
        assert torch.equal(our_image, expected_image)
        assert all(torch.equal(ours[name], expected[name][kept]) for name in shapes(expected))
        assert isinstance(ours["boxes"], tv_tensors.BoundingBoxes)
        assert ours["boxes"].canvas_size == (36, 38)
    assert gone > 0


def test_other_forms_of_boxes_stay_as_transforms_made_them(sets: Mapping[str, Path]) -> None:
    """XYWH and plain tensors; a box whose width is below its x is no box without area."""
    found = opened(sets["yolo"])
    for form in ("XYWH", "CXCYWH"):
        change = v2.Compose([v2.ConvertBoundingBoxFormat(form), v2.ToPureTensor()])
        for dataset in (
            DetectionDataset(found, v2.ConvertBoundingBoxFormat(form)),
            DetectionDataset(found, change),
        ):
            lengths = [len(target["boxes"]) for _, target in dataset]
            assert lengths == [len(target["boxes"]) for _, target in DetectionDataset(found)]


def test_values_that_transforms_left_behind_are_refused(sets: Mapping[str, Path]) -> None:
    """SanitizeBoundingBoxes takes flags of objects only if it is told to:
    they would belong to other boxes.
    """
    change = v2.Compose([v2.CenterCrop(30), v2.SanitizeBoundingBoxes()])
    with pytest.raises(
        UsageError,
        match=r"(?s)transforms gave boxes: .* iscrowd: .*SanitizeBoundingBoxes\(labels_getter=",
    ):
        list(DetectionDataset(opened(sets["coco"]), change))
    assert len(list(DetectionDataset(opened(sets["yolo"]), change))) == 6


def test_transforms_that_give_no_target_are_refused(sets: Mapping[str, Path]) -> None:
    """Such as a function of the image alone, whose result happens to be a tensor."""
    with pytest.raises(UsageError, match=r"gave one Image\n.*image and .*target"):
        DetectionDataset(opened(sets["voc"]), lambda image, target: image)[0]
    with pytest.raises(UsageError, match=r"gave one tuple of 3 values\n"):
        DetectionDataset(opened(sets["voc"]), lambda image, target: (image, target, 1))[0]


# batches ------------------------------------------------------------------------------------------


def test_objects_without_a_collate_function(sets: Mapping[str, Path]) -> None:
    """The error has the line that makes batches, which works as it is written: a transform alone,
    that makes images one size, would not.
    """
    one_size = v2.Resize((24, 24))
    for dataset in (
        DetectionDataset(opened(sets["voc"])),
        DetectionDataset(opened(sets["voc"]), one_size),
    ):
        with pytest.raises(UsageError, match="images with objects make no batch") as caught:
            list(Loader(dataset, 4))
        names = {"Loader": Loader, "dataset": dataset, "batch_size": 4}
        assert list(eval(caught.value.hint, {**names, "collate_detection": collate_detection}))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_makes_batches_of_any_sizes(sets: Mapping[str, Path], workers: int) -> None:
    """Images and targets are two tuples; tensors keep their kinds on the way from a worker;
    a state resumes.
    """
    dataset = DetectionDataset(opened(sets["outlines"]), v2.RandomHorizontalFlip())
    options: dict[str, Any] = {
        "batch_size": 5,
        "collate_fn": collate_detection,
        "seed": 3,
        "drop_last": False,
    }
    loader = Loader(dataset, **options, num_workers=workers)
    batches = list(loader)
    assert [len(images) for images, _ in batches] == [5, 5, 2]
    ids = [target["image_id"] for _, targets in batches for target in targets]
    assert sorted(ids) == sorted(target["image_id"] for _, target in dataset)
    for images, targets in batches:
        for image, target in zip(images, targets, strict=True):
            assert isinstance(target["boxes"], tv_tensors.BoundingBoxes)
            assert (
                target["boxes"].canvas_size
                == tuple(image.shape[1:])
                == tuple(target["masks"].shape[1:])
            )
    again = Loader(dataset, **options)
    next(iter(again))
    resumed = Loader(dataset, **options)
    resumed.load_state_dict(again.state_dict())
    for (images, targets), (other_images, other_targets) in zip(batches[1:], resumed, strict=True):
        assert all(map(torch.equal, images, other_images))
        assert all(
            torch.equal(one["boxes"], other["boxes"])
            for one, other in zip(targets, other_targets, strict=True)
        )


def test_damaged_records_of_objects(sets: Mapping[str, Path], tmp_path: Path) -> None:
    """A flipped bit is an error that names the record, or is left out of its batch and counted."""
    shutil.copytree(sets["coco"] / "out", tmp_path / "out")
    flip(tmp_path / "out/train-00000-of-00001", 300)
    options: dict[str, Any] = {"batch_size": 4, "collate_fn": collate_detection, "shuffle": False}
    with pytest.raises(DamagedRecordError, match=r"record 0 .*is damaged"):
        list(Loader(DetectionDataset(opened(tmp_path)), **options))
    loader = Loader(DetectionDataset(opened(tmp_path)), **options, on_damaged="skip")
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert [len(images) for images, _ in loader] == [3, *[4] * 6, 2]
    assert loader.skipped == {"checksum": 1}


def test_a_damaged_mask_is_left_out_with_its_record(tmp_path: Path) -> None:
    """The record's bytes are those that were written: the fault is its image."""
    whole = png(np.ones((20, 40), np.uint8))
    found = foreign(tmp_path, {LABEL: [1], MASK: [whole]}, {LABEL: [1], MASK: [whole[:-20]]})
    loader = Loader(
        DetectionDataset(found), 2, collate_fn=collate_detection, shuffle=False, on_damaged="skip"
    )
    with pytest.warns(UserWarning, match=r"left out: .*record 1 .*its mask can't be read"):
        assert [len(images) for images, _ in loader] == [1]
    assert loader.skipped == {"image": 1}


# masks of images ----------------------------------------------------------------------------------


def class_mask(mode: str, size: tuple[int, int] = (40, 20)) -> bytes:
    """A PNG of the classes 0, 1 and 255, or 300 with 16 bits, of this mode."""
    values = np.zeros(size[::-1], np.uint16)
    values[5:, 10:], values[0] = 1, 300 if mode == "I;16" else 255
    image = Image.fromarray(values if mode == "I;16" else values.astype(np.uint8))
    if mode == "P":
        image.putpalette(
            [level for colour in range(256) for level in (colour, colour // 2, 255 - colour)]
        )
    elif mode in ("1", "RGB"):
        image = image.convert(mode)
    image.save(buffer := io.BytesIO(), "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("mode", "classes", "dtype"),
    [
        ("L", {0, 1, 255}, "uint8"),
        ("P", {0, 1, 255}, "uint8"),
        ("1", {0, 1}, "uint8"),
        ("I;16", {0, 1, 300}, "int32"),
    ],
)
def test_masks_of_classes_have_the_stored_values(
    tmp_path: Path, mode: str, classes: set[int], dtype: str
) -> None:
    """Not the colours of a palette, and nothing scaled; v2 changes image and mask alike."""
    for number in range(3):
        save(tmp_path / f"images/{number}.jpg", photograph(40, 20, number))
        save(tmp_path / f"masks/{number}.png", class_mask(mode))
    make(tmp_path, "source: {files: images/*}\nmask: {folder: masks}\n")
    dataset = SegmentationDataset(opened(tmp_path))
    image, mask = dataset[0]
    with Image.open(io.BytesIO(class_mask(mode))) as stored:
        assert (mask.numpy() == np.asarray(stored)).all()
    assert (isinstance(image, tv_tensors.Image), isinstance(mask, tv_tensors.Mask)) == (True, True)
    assert (set(mask.unique().tolist()), mask.dtype, tuple(mask.shape)) == (
        classes,
        getattr(torch, dtype),
        (20, 40),
    )
    flipped = SegmentationDataset(opened(tmp_path), v2.RandomHorizontalFlip(1.0))
    images, masks = next(iter(Loader(flipped, 3, shuffle=False)))
    assert torch.equal(images[0], image.flip(2))
    assert torch.equal(masks[0], mask.flip(1))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({}, "has no image/segmentation/class/encoded"),
        (
            {"segmentation/class/encoded": class_mask("RGB")},
            "a mask of 3 channels.*expected one number per pixel",
        ),
        ({"segmentation/class/encoded": class_mask("L", (41, 20))}, "a mask of 41 x 20 pixels"),
        ({"segmentation/class/encoded": class_mask("L")[:-20]}, "its mask can't be read"),
    ],
)
def test_a_fault_of_a_mask_names_its_record(
    tmp_path: Path, features: Mapping[str, Any], words: str
) -> None:
    """The error has file, record and byte, what is wrong and what is expected."""
    with pytest.raises(InputError, match=rf"(?s)record 0 .*{words}"):
        SegmentationDataset(foreign(tmp_path, features))[0]
