"""make prove: a published network finds right labels right, and says how wrong ones are wrong."""

from __future__ import annotations

import dataclasses
import importlib
import io
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from existing import existing
from package_photographs import photographs
from PIL import Image
from running import command_here

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.errors import IncompleteError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.reading.shard_set import ShardSet

pytestmark = pytest.mark.project

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
WNIDS = facts.synsets()
OFFICIAL = {wnid: label - 1 for wnid, label in facts.labels().items()}
"""The network's class of each WordNet id."""


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """scripts/prove_labels.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        yield importlib.import_module("prove_labels")


class Remembering:
    """The network, which classifies each image once, in however many sets it is."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self._known: dict[bytes, np.ndarray] = {}

    def classify(self, pixels: np.ndarray) -> np.ndarray:
        """Probabilities of images."""
        return np.stack([self._classify_one(image) for image in pixels])

    def _classify_one(self, image: np.ndarray) -> np.ndarray:
        key = image.tobytes()
        if key not in self._known:
            self._known[key] = self._network.classify(image[None])[0]
        return self._known[key]


@pytest.fixture(scope="module")
def network(script: ModuleType, torch: Any) -> Remembering:
    """EfficientNet-Lite0."""
    return Remembering(script.Network())


def encode(image: Image.Image, is_bgr: bool = False) -> bytes:
    """The JPEG of an image, with red and blue swapped if asked."""
    image = image.convert("RGB")
    if is_bgr:
        image = Image.merge("RGB", image.split()[::-1])
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95)
    return file.getvalue()


def convert_folders(folder: Path, move: int = 0) -> Path:
    """Shards of the photographs, each in the folder of its class,
    or of one ``move`` places further.
    """
    for path, wnid in photographs().items():
        target = folder / "photographs" / WNIDS[OFFICIAL[wnid] + move] / f"{path.stem}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(encode(Image.open(path)))
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        "source: {folders: photographs}\nsplits: {validation: 1.0}\nrecord: inception\n"
    )
    command_here("convert", folder / "shards", "--config", recipe)
    return folder / "shards"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photographs/<wnid>/*.jpg, and shards of them under the right classes.
    Read only.
    """
    return convert_folders(tmp_path_factory.mktemp("right")).parent


def write_set(folder: Path, images: Sequence[tuple[bytes, int]], **features: Any) -> ShardSet:
    """The records of a set of another maker, without a manifest: JPEG and label of each image."""
    rows = [
        {
            "image/encoded": jpeg,
            "image/class/label": label,
            "image/filename": f"{number}.jpg",
            **features,
        }
        for number, (jpeg, label) in enumerate(images)
    ]
    records.write(folder / "validation-00000-of-00001", rows)
    return imagenet_prep.open(folder, "validation")


def labelled(label: Callable[[int], int], is_bgr: bool = False) -> list[tuple[bytes, int]]:
    """The photographs, each with the label that a function makes of its class."""
    return [
        (encode(Image.open(path), is_bgr), label(OFFICIAL[wnid]))
        for path, wnid in photographs().items()
    ]


def test_photographs_are_right_among_the_first_five(
    script: ModuleType, network: Any, converted: Path
) -> None:
    """From shards every class is among the first five,
    with the probabilities of the file as Pillow reads it.
    """
    sample = script.classify_sample(
        imagenet_prep.open(converted / "shards", "validation"), network, 0
    )
    verdict = script.judge(sample)
    assert verdict.status == 0, verdict.sentence
    assert script.top(sample.probabilities, verdict.weighed[0].explanation.classes, 5).all()
    files = {path.name: path for path in existing(converted / "photographs", "*/*.jpg")}
    for image, probabilities in zip(sample.described, sample.probabilities, strict=True):
        path = files[Path(image.filename).name]
        direct = network.classify(script.middle(Image.open(path).convert("RGB"))[None])[0]
        assert OFFICIAL[path.parent.name] == sample.order[image.position]
        np.testing.assert_allclose(probabilities, direct, atol=1e-6)
    assert len(sample.described) == len(files) == 7


def test_moved_labels_fail_the_command(tmp_path: Path) -> None:
    """Photographs in the folders of the next classes:
    the command ends with 3 and says that labels are moved by one.
    """
    shards = convert_folders(tmp_path, move=1)
    ran = subprocess.run(
        [sys.executable, SCRIPTS / "prove_labels.py", shards], capture_output=True, text=True
    )
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert ran.stdout.endswith("\nwrong: labels are moved by one: 0 is the background class?\n")


BY_WORDS = sorted(range(1000), key=lambda number: facts.texts()[WNIDS[number]].lower())
AS_TEXT = sorted(range(1000), key=str)
SHUFFLED = random.Random(0).sample(range(1000), 1000)


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        (lambda number: number + 1, "right: the labels fit the images"),
        (lambda number: number + 2, "wrong: labels are moved by one: 0 is the background class?"),
        (
            lambda number: number,
            "wrong: labels are moved by one: 0 is the first class, and not the background?",
        ),
        (
            lambda number: facts.devkit_ids()[WNIDS[number]],
            "wrong: labels count the classes in another order: the devkit's ILSVRC2012_ID",
        ),
        (
            lambda number: OFFICIAL[list(facts.devkit_ids())[number]] + 1,
            "wrong: labels count the classes in another order: the devkit's ILSVRC2012_ID, "
            "converted in the wrong direction",
        ),
        (
            lambda number: BY_WORDS.index(number) + 1,
            "wrong: labels count the classes in another order: class names, not WordNet ids",
        ),
        (
            lambda number: AS_TEXT.index(number) + 1,
            "wrong: labels count the classes in another order: numbers as text: 0, 1, 10, 100",
        ),
        (
            lambda number: SHUFFLED[number] + 1,
            (
                "wrong: labels say nothing about the images: they belong to others, "
                "or the images are decoded wrong"
            ),
        ),
    ],
)
def test_wrong_labels_are_explained(
    script: ModuleType, network: Any, tmp_path: Path, label: Callable[[int], int], sentence: str
) -> None:
    """A set of another maker, whose labels count in one of the ways that are known to go wrong."""
    sample = script.classify_sample(write_set(tmp_path, labelled(label)), network, 0)
    verdict = script.judge(sample)
    assert verdict.sentence == sentence
    assert verdict.status == (0 if sentence.startswith("right") else 3)
    assert script.report(sample, verdict)[-1] == sentence


def test_a_set_that_counts_from_0_is_right(
    network: Any,
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``--first-label 0`` proves a set of another maker, whose classes count from 0."""
    write_set(tmp_path, labelled(lambda number: number))
    monkeypatch.setattr(script, "Network", lambda: network)
    monkeypatch.setattr(sys, "argv", ["prove_labels.py", str(tmp_path), "--first-label", "0"])
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 0
    assert capsys.readouterr().out.endswith("\nright: the labels fit the images\n")


@pytest.mark.parametrize("label", ["0", "5"])
def test_a_manifest_says_where_labels_start(
    script: ModuleType,
    converted: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    label: str,
) -> None:
    """Another ``--first-label`` is refused, before the network is loaded."""
    monkeypatch.setattr(
        sys, "argv", ["prove_labels.py", str(converted / "shards"), "--first-label", label]
    )
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 2
    assert "says that labels start at 1" in capsys.readouterr().err


def test_ctrl_c_ends_without_a_traceback(
    script: ModuleType,
    converted: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 130, as of every command."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "Network", interrupt)
    monkeypatch.setattr(sys, "argv", ["prove_labels.py", str(converted / "shards")])
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "interrupted: no verdict\n"


@pytest.mark.parametrize("target", ["prove", "imagenet"])
def test_make_without_a_folder_installs_nothing(tmp_path: Path, target: str) -> None:
    """The usage comes first: PyTorch may be several GB."""
    call = ["make", "-C", str(SCRIPTS.parent), target, f"VENV={tmp_path / 'venv'}", "PYTHON=false"]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    assert f"usage: make {target} DATA_DIR=" in ran.stderr
    assert not (tmp_path / "venv").exists()


def test_right_wordnet_ids_are_told_from_wrong_labels(
    script: ModuleType, network: Any, tmp_path: Path
) -> None:
    """A record whose label is another class than its WordNet id:
    the network says which of them is right.
    """
    path = next(path for path, wnid in photographs().items() if wnid == "n07920052")
    opened = write_set(
        tmp_path, [(encode(Image.open(path)), 7)] * 3, **{"image/class/synset": "n07920052"}
    )
    verdict = script.judge(script.classify_sample(opened, network, 0))
    assert verdict.sentence == "wrong: labels are wrong; the WordNet ids of the records are right"


def test_swapped_colors_are_told(script: ModuleType, network: Any, tmp_path: Path) -> None:
    """Images with red and blue swapped are BGR, their labels right.
    Ten copies stand for the images that it takes.
    """
    sentences = {}
    for is_bgr in (False, True):
        folder = tmp_path / str(is_bgr)
        folder.mkdir()
        opened = write_set(folder, labelled(lambda number: number + 1, is_bgr) * 10)
        verdict = script.judge(script.classify_sample(opened, network, 0))
        sentences[verdict.colors[:3]] = verdict.sentence
    assert sentences == {
        "RGB": "right: the labels fit the images",
        "BGR": "wrong: images are decoded wrong: red and blue are swapped (BGR)",
    }


def test_one_image_decides_nothing(script: ModuleType, network: Any, tmp_path: Path) -> None:
    """With one image the verdict is undecided, with the number of images that would decide."""
    sample = script.classify_sample(
        write_set(tmp_path, labelled(lambda number: number + 1)[:1]), network, 0
    )
    verdict = script.judge(sample)
    assert verdict.sentence.startswith("undecided: 1 image can't say whether the labels are right")
    assert verdict.sentence.endswith("about 2 are needed")
    assert verdict.status == 4


# statistics: a network that is made up ------------------------------------------------------------


def imagined(
    script: ModuleType, labels: np.ndarray, classes: np.ndarray, *, names: str = "{}.jpg"
) -> Any:
    """A sample whose network is as sure as it is right: three of four images are of the class it
    holds most likely.

    Args:
        script: scripts/prove_labels.py.
        labels: what the set says, from 0.
        classes: what the images show.
        names: the form of file names, by the number of an image from 1.
    """
    generator = np.random.default_rng(0)
    count = len(classes)
    likely = np.where(generator.random(count) < 0.75, classes, generator.integers(1000, size=count))
    probabilities = np.full((count, 1000), 0.25 / 1000, np.float32)
    probabilities[np.arange(count), likely] += 0.75
    swapped = np.full_like(probabilities, 1 / 1000)
    described = [
        script.Described(int(label), -1, names.format(number), 500)
        for number, label in enumerate(labels, start=1)
    ]
    return script.Sample(count, np.arange(1000), described, probabilities, swapped)


EVERY_CLASS = np.arange(2000) // 2
FROM_400_ON = np.where(EVERY_CLASS >= 400, EVERY_CLASS - 1, EVERY_CLASS)
THIRD_WRONG = np.where(np.arange(2000) % 3, EVERY_CLASS, np.array([*SHUFFLED, *SHUFFLED]))
OFFICIAL_NAMES = "ILSVRC2012_val_{:08d}.JPEG"


@pytest.mark.parametrize(
    ("labels", "names", "sentence"),
    [
        (EVERY_CLASS, OFFICIAL_NAMES, "right: the labels fit the images"),
        (
            FROM_400_ON,
            OFFICIAL_NAMES,
            "wrong: labels from 400, n02669723 academic gown, on are moved by one",
        ),
        (np.array(SHUFFLED)[EVERY_CLASS], "{}.jpg", "wrong: images with the same label look alike"),
        (
            np.random.default_rng(1).permutation(EVERY_CLASS),
            "{}.jpg",
            "wrong: labels say nothing about the images",
        ),
        (THIRD_WRONG, OFFICIAL_NAMES, "wrong: top-1 is 5"),
        (THIRD_WRONG, "{}.jpg", "undecided: top-1 is 5"),
    ],
)
def test_two_thousand_images_show_more(
    script: ModuleType, labels: np.ndarray, names: str, sentence: str
) -> None:
    """Faults that take two images of each class.

    A share of wrong labels is wrong where the accuracy is known; elsewhere it is never right.
    """
    verdict = script.judge(imagined(script, labels, EVERY_CLASS, names=names))
    assert verdict.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("share_wrong", "word"), [(0, "right"), (1 / 4, "right"), (1 / 2, "undecided")]
)
def test_a_part_of_the_classes_may_be_hard(
    script: ModuleType, share_wrong: float, word: str
) -> None:
    """Of ten classes, half of the images need to be seen right, whatever their names are."""
    classes = np.arange(200) // 20
    generator = np.random.default_rng(2)
    is_wrong = generator.random(200) < share_wrong
    labels = np.where(is_wrong, generator.permutation(classes), classes)
    sample = imagined(script, labels, classes, names=OFFICIAL_NAMES)
    part = dataclasses.replace(sample, order=np.arange(10))
    verdict = script.judge(part)
    assert verdict.sentence.partition(":")[0] == word


def test_wrong_verdicts_are_rare(script: ModuleType) -> None:
    """Right labels of 5 images each, 100 times: never wrong, and mostly right."""
    words = []
    for seed in range(100):
        classes = np.random.default_rng(seed).integers(1000, size=5)
        sample = imagined(script, classes, classes)
        words.append(script.judge(sample).sentence.partition(":")[0])
    assert words.count("wrong") == 0
    assert words.count("right") > 75


def test_a_class_that_is_swapped_stands_out(script: ModuleType) -> None:
    """Labels of hook and hoopskirt exchanged: each has a line with what its images look like."""
    labels = np.repeat(np.arange(500, 1000), 4)
    classes = labels.copy()
    classes[labels == 600], classes[labels == 601] = 601, 600
    sample = imagined(script, labels, classes)
    lines = script.report(sample, script.judge(sample))
    assert "  class 600, n03532672 hook: 4 images, most like n03534580 hoopskirt" in lines
    assert "  class 601, n03534580 hoopskirt: 4 images, most like n03532672 hook" in lines


# which sets can be proved -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ({}, list(range(1000))),
        ({1: "n01440764", 3: "n01484850"}, list(range(1000))),
        ({1: "n01484850", 2: "n01440764"}, [2, 0]),
        ({1: "Goldfish", 2: "tench", 4: "great_white_shark"}, [1, 0, -1, 2]),
        ({1: "tench, Tinca tinca"}, list(range(1000))),
        ({1: "maillot, tank suit", 2: "maillot"}, [639, 638]),
    ],
)
def test_classes_are_found_by_their_names(
    script: ModuleType, names: dict[int, str], order: list[int]
) -> None:
    """WordNet ids and words name the network's classes;
    a part under official labels keeps the official order.
    """
    assert script.class_order(names, 1).tolist() == order


@pytest.mark.parametrize("name", ["rose", "3", "crane"])
def test_other_classes_are_refused(script: ModuleType, name: str) -> None:
    """Names that no class of ILSVRC2012 has, numbers of fewer classes, and words of two classes."""
    with pytest.raises(UsageError, match=rf"1 of 2 classes .*{name}"):
        script.class_order({1: "tench", 2: name}, 1)


def test_other_labels_are_refused(script: ModuleType, network: Any, tmp_path: Path) -> None:
    """Labels far beyond 1000, and records without any, are no labels of ImageNet."""
    (jpeg, _), *_ = labelled(lambda number: number)
    (tmp_path / "large").mkdir()
    with pytest.raises(UsageError, match=r"labels.*1,999 to 1,999"):
        script.classify_sample(write_set(tmp_path / "large", [(jpeg, 2000)]), network, 0)
    records.write(tmp_path / "validation-00000-of-00001", [{"image/encoded": jpeg}])
    with pytest.raises(IncompleteError, match="no image with a label"):
        script.classify_sample(imagenet_prep.open(tmp_path, "validation"), network, 0)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_sample_is_spread_over_all_shards(
    script: ModuleType, tmp_path: Path, compression: str
) -> None:
    """Two of every four records, from both shards, plain or compressed."""
    for shard in range(2):
        rows = [
            {"image/class/label": 4 * shard + number, "image/encoded": b""} for number in range(4)
        ]
        records.write(tmp_path / f"validation-0000{shard}-of-00002", rows, compression)
    spread = script._spread(imagenet_prep.open(tmp_path, "validation"), 4)
    assert [record.features["image/class/label"] for record in spread] == [1, 3, 5, 7]
