"""Folders whose classes stand in the names of folders or files:
known data sets, competitions and course pages.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping

from kept_folders import Painter, Truth, kept, name_of, stem
from PIL import Image

# helpers of both lists of classified folders ------------------------------------------------------


def paint_classes(
    painter: Painter, pattern: str, classes: Iterable[str], count: int = 4, first: int = 1
) -> dict[str, str]:
    """Images of each class, by a pattern with {name} and {number}; the class of each."""
    painted = {}
    for name in classes:
        for number in range(first, first + count):
            painted[painter.paint(pattern.format(name=name, number=number))] = name
    return painted


def all_in(paths: Iterable[str], split: str) -> dict[str, str]:
    """These images are all in one split."""
    return dict.fromkeys(paths, split)


def numbered(names: Iterable[str]) -> dict[str, int]:
    """The classes are numbered in this order, from 0."""
    return {name: number for number, name in enumerate(names)}


def renamed(classes: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The class of each image by its name in place of its id."""
    return {path: names[key] for path, key in classes.items()}


def unlabelled(paths: Iterable[str]) -> dict[str, None]:
    """These images have no class."""
    return dict.fromkeys(paths)


def table(*rows: Iterable[object], sign: str = ",") -> str:
    """The lines of a table, each from its cells."""
    return "".join(sign.join(map(str, row)) + "\n" for row in rows)


def by_name(values: Mapping[str, object], part: Callable[[str], str]) -> list[tuple[str, object]]:
    """A row of each path: a part of it (``name_of`` or ``stem``), and its value."""
    return [(part(path), value) for path, value in values.items()]


def mask_file(value: int = 255) -> bytes:
    """The file of a mask: a PNG that is black to the left and of one gray to the right."""
    mask = Image.new("L", (16, 12))
    mask.paste(value, (8, 0, 16, 12))
    stream = io.BytesIO()
    mask.save(stream, "PNG")
    return stream.getvalue()


def copy_file(painter: Painter, source: str, target: str) -> None:
    """Write a file of the folder once more."""
    painter.write(target, (painter.folder / source).read_bytes())


def zip_of(painter: Painter, paths: Iterable[str]) -> bytes:
    """A zip of files that are written already."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in paths:
            archive.writestr(zipfile.ZipInfo(path), (painter.folder / path).read_bytes())
    return stream.getvalue()


# the class in the name of the file ----------------------------------------------------------------


@kept
def dogs_vs_cats(painter: Painter) -> Truth:
    """Kaggle, Dogs vs. Cats: train/cat.0.jpg says the class, and test1/1.jpg has none."""
    classes = paint_classes(painter, "train/{name}.{number}.jpg", ["cat", "dog"], 6, first=0)
    test = painter.paint_all("test1/{}.jpg", 5, first=1)
    painter.write(
        "sampleSubmission.csv", table(("id", "label"), *((stem(path), 0) for path in test))
    )
    return Truth(classes, splits=all_in(classes, "train"), left_out=test)


@kept
def pets_by_file_name(painter: Painter) -> Truth:
    """fast.ai's course, Oxford-IIIT Pets: images/great_pyrenees_12.jpg
    says the breed before its number.
    """
    breeds = ["Abyssinian", "Birman", "great_pyrenees", "pembroke"]
    return Truth(paint_classes(painter, "images/{name}_{number}.jpg", breeds, 5, first=9))


@kept
def utkface(painter: Painter) -> Truth:
    """UTKFace: AGE_GENDER_RACE_DATE.jpg.chip.jpg; a class may be read from it, or none."""
    genders, races = {}, {}
    for number in range(12):
        gender, race = str(number % 2), str(number % 3)
        name = f"UTKFace/{20 + number % 5}_{gender}_{race}_2017010917{number:04}.jpg.chip.jpg"
        path = painter.paint(name)
        genders[path], races[path] = gender, race
    return Truth(genders, choices=[Truth(races), Truth(unlabelled(genders))])


@kept
def asl_alphabet(painter: Painter) -> Truth:
    """Kaggle, ASL Alphabet: a doubled folder of class folders;
    one test image a class, named A_test.jpg.
    """
    letters = ["A", "B", "C", "nothing"]
    train = paint_classes(
        painter, "asl_alphabet_train/asl_alphabet_train/{name}/{name}{number}.jpg", letters, 4
    )
    test = {
        painter.paint(f"asl_alphabet_test/asl_alphabet_test/{name}_test.jpg"): name
        for name in letters
    }
    both = Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))
    return Truth(train, splits=all_in(train, "train"), left_out=list(test), choices=[both])


@kept
def market_1501(painter: Painter) -> Truth:
    """Market-1501 as published: the person is the number before _c1s1;
    query and gallery have other persons.
    """
    train = {}
    for person in ("0002", "0007", "0010"):
        for number in range(4):
            path = f"bounding_box_train/{person}_c{number + 1}s1_000{number}51_03.jpg"
            train[painter.paint(path)] = person
    other = [painter.paint(f"query/0001_c{number}s1_001051_00.jpg") for number in range(1, 4)]
    other += [
        painter.paint(f"bounding_box_test/0001_c{number}s2_001976_01.jpg") for number in range(1, 4)
    ]
    other += [
        painter.paint(f"bounding_box_test/-1_c{number}s1_000401_03.jpg") for number in range(1, 4)
    ]
    painter.write("readme.txt", "bounding_box_train, bounding_box_test, query: see the paper\n")
    return Truth(train, splits=all_in(train, "train"), left_out=other)


# folders of splits under other names --------------------------------------------------------------


@kept
def hymenoptera(painter: Painter) -> Truth:
    """PyTorch's transfer learning tutorial: ants and bees in train and val,
    with imageNotFound.gif among the ants.
    """
    train = paint_classes(painter, "train/{name}/{number}_a1.jpg", ["ants", "bees"], 5)
    val = paint_classes(painter, "val/{name}/{number}_b2.jpg", ["ants", "bees"], 3)
    lost = painter.paint("train/ants/imageNotFound.gif")
    classes = train | val | {lost: "ants"}
    return Truth(
        classes, splits=all_in([*train, lost], "train") | all_in(val, "validation"), left_out=[lost]
    )


@kept
def cat_and_dog_doubled(painter: Painter) -> Truth:
    """Kaggle, Cat and Dog: training_set/training_set/cats and test_set/test_set/dogs,
    each with a _DS_Store.
    """
    train = paint_classes(
        painter, "training_set/training_set/{name}/cat.{number}.jpg", ["cats", "dogs"], 5
    )
    test = paint_classes(
        painter, "test_set/test_set/{name}/cat.{number}.jpg", ["cats", "dogs"], 3, first=4001
    )
    for folder in ("training_set/training_set/cats", "test_set/test_set/dogs"):
        painter.write(f"{folder}/_DS_Store", b"\0\0\0\1Bud1")
    return Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def intel_scenes(painter: Painter) -> Truth:
    """Kaggle, Intel Image Classification: seg_train/seg_train/CLASS,
    seg_test/seg_test/CLASS, seg_pred/seg_pred.
    """
    scenes = ["buildings", "forest", "glacier"]
    train = paint_classes(painter, "seg_train/seg_train/{name}/{number}.jpg", scenes, 4)
    test = paint_classes(painter, "seg_test/seg_test/{name}/{number}.jpg", scenes, 2, first=20057)
    other = painter.paint_all("seg_pred/seg_pred/{}.jpg", 4, first=3)
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(train | test, splits=splits, numbers=numbered(scenes), left_out=other)


@kept
def fruits_360(painter: Painter) -> Truth:
    """Kaggle, Fruits-360: Training and Test of class folders,
    test-multiple_fruits flat, papers and a readme.
    """
    fruits = ["Apple Braeburn", "Banana", "Cherry 1", "Cherry 2"]
    train = paint_classes(painter, "Training/{name}/{number}_100.jpg", fruits, 4, first=0)
    test = paint_classes(painter, "Test/{name}/r_{number}_100.jpg", fruits, 2, first=3)
    several = painter.paint_all("test-multiple_fruits/apple_apricot_{}.jpg", 3)
    painter.write("papers/arxiv.pdf", b"%PDF-1.4\n")
    painter.write("readme.md", "# Fruits-360\n")
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(train | test, splits=splits, numbers=numbered(fruits), left_out=several)


@kept
def fer_public_private(painter: Painter) -> Truth:
    """Kaggle, FER-2013 as folders: Training, PublicTest (the validation
    set by custom) and PrivateTest.
    """
    moods = ["Angry", "Happy", "Sad"]
    train = paint_classes(painter, "Training/{name}/Training_{number}.jpg", moods, 4)
    public = paint_classes(painter, "PublicTest/{name}/PublicTest_{number}.jpg", moods, 2)
    private = paint_classes(painter, "PrivateTest/{name}/PrivateTest_{number}.jpg", moods, 2)
    splits = all_in(train, "train") | all_in(public, "validation") | all_in(private, "test")
    return Truth(train | public | private, splits=splits)


@kept
def blood_cells(painter: Painter) -> Truth:
    """Kaggle, Blood Cell Images: TRAIN, TEST and TEST_SIMPLE (a part of the tests that is
    easier) in capitals.
    """
    cells = ["EOSINOPHIL", "LYMPHOCYTE", "MONOCYTE"]
    train = paint_classes(painter, "images/TRAIN/{name}/_0_{number}.jpeg", cells, 4)
    test = paint_classes(painter, "images/TEST/{name}/_1_{number}.jpeg", cells, 2)
    simple = painter.paint_all("images/TEST_SIMPLE/EOSINOPHIL/_2_{}.jpeg", 2)
    return Truth(
        train | test, splits=all_in(train, "train") | all_in(test, "test"), left_out=simple
    )


@kept
def rock_paper_scissors(painter: Painter) -> Truth:
    """Laurence Moroney's course: rps and rps-test-set of class folders,
    rps-validation flat with names of classes.
    """
    shapes = ["paper", "rock", "scissors"]
    train = paint_classes(painter, "rps/{name}/{name}01-{number:03}.png", shapes, 4)
    test = paint_classes(painter, "rps-test-set/{name}/test{name}01-{number:02}.png", shapes, 2)
    flat = painter.paint_all("rps-validation/paper{}.png", 2) + painter.paint_all(
        "rps-validation/rock{}.png", 2
    )
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(train | test, splits=splits, numbers=numbered(shapes), left_out=flat)


@kept
def train_dev_eval(painter: Painter) -> Truth:
    """Anti-spoofing sets (Idiap's Replay-Attack): train, devel's short form dev,
    and eval, each of real and attack.
    """
    train = paint_classes(painter, "train/{name}/t{number}.png", ["attack", "real"], 4)
    dev = paint_classes(painter, "dev/{name}/d{number}.png", ["attack", "real"], 2)
    evaluation = paint_classes(painter, "eval/{name}/e{number}.png", ["attack", "real"], 2)
    splits = all_in(train, "train") | all_in(dev, "validation") | all_in(evaluation, "test")
    return Truth(train | dev | evaluation, splits=splits)


@kept
def valid_set_with_a_blank(painter: Painter) -> Truth:
    """Kaggle, own sets of nuts and leaves: Train, "Valid set" and Test,
    with capitals and a blank.
    """
    train = paint_classes(painter, "Train/{name}/{number}.jpg", ["Kirmizi", "Siirt"], 4)
    valid = paint_classes(
        painter, "Valid set/{name}/{number}.jpg", ["Kirmizi", "Siirt"], 2, first=50
    )
    test = paint_classes(painter, "Test/{name}/{number}.jpg", ["Kirmizi", "Siirt"], 2, first=80)
    splits = all_in(train, "train") | all_in(valid, "validation") | all_in(test, "test")
    return Truth(train | valid | test, splits=splits)


@kept
def synology_thumbnails(painter: Painter) -> Truth:
    """A set kept on a Synology: every folder has an @eaDir of thumbnails,
    and the root has Windows' bin.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["cat", "dog"], 3)
    test = paint_classes(painter, "test/{name}/{number}.jpg", ["cat", "dog"], 2, first=7)
    for folder in ("train", "train/cat", "test/dog"):
        painter.paint(f"{folder}/@eaDir/1.jpg/SYNOFILE_THUMB_M.jpg")
    painter.write("$RECYCLE.BIN/desktop.ini", "[.ShellClassInfo]\n")
    return Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def splits_of_two_cases(painter: Painter) -> Truth:
    """Two people's halves of a set: Cat and Dog in train are cat and dog in val;
    a person asks whether they are one.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["Cat", "Dog"], 4)
    val = paint_classes(painter, "val/{name}/{number}.jpg", ["cat", "dog"], 2)
    classes = train | {path: name.capitalize() for path, name in val.items()}
    return Truth(classes, splits=all_in(train, "train") | all_in(val, "validation"), must_ask=True)


@kept
def letters_of_two_cases(painter: Painter) -> Truth:
    """Handwriting (NIST's letters): the folders a and A are two classes, in each split."""
    names = ["A", "B", "a", "b"]
    train = paint_classes(painter, "train/{name}/{number}.png", names, 3)
    test = paint_classes(painter, "test/{name}/{number}.png", names, 2, first=9)
    return Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def splits_within_classes(painter: Painter) -> Truth:
    """MIT Indoor and lab folders: each class has its own train and test
    folder (cat/train/1.jpg).
    """
    train = paint_classes(painter, "{name}/train/{number}.jpg", ["cat", "dog", "fox"], 4)
    test = paint_classes(painter, "{name}/test/{number}.jpg", ["cat", "dog", "fox"], 2, first=10)
    return Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def five_folds(painter: Painter) -> Truth:
    """Adience and own sets with cross-validation:
    fold1 to fold5, each of the same class folders.
    """
    classes: dict[str, str] = {}
    for fold in range(1, 6):
        classes |= paint_classes(
            painter, f"fold{fold}/{{name}}/{fold}{{number}}.jpg", ["benign", "malignant"], 2
        )
    last = {path: "test" if path.startswith("fold5") else "train" for path in classes}
    return Truth(classes, splits=all_in(classes, "train"), choices=[Truth(classes, splits=last)])


@kept
def mnist_png(painter: Painter) -> Truth:
    """mnist_png on GitHub: training/0/1.png and testing/0/3.png; the folder is the digit."""
    train = paint_classes(painter, "mnist_png/training/{name}/{number}.png", map(str, range(10)), 2)
    test = paint_classes(
        painter, "mnist_png/testing/{name}/{number}.png", map(str, range(10)), 1, first=9
    )
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(train | test, splits=splits, numbers={str(digit): digit for digit in range(10)})


@kept
def val_of_fewer_classes(painter: Painter) -> Truth:
    """Own sets with few images: val lacks two of train's classes;
    the numbers are those of train.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["ash", "beech", "elm", "oak"], 4)
    val = paint_classes(painter, "val/{name}/v{number}.jpg", ["beech", "oak"], 3)
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(train | val, splits=splits, numbers=numbered(["ash", "beech", "elm", "oak"]))


@kept
def val_images(painter: Painter) -> Truth:
    """Copies of Tiny ImageNet that lost their lists:
    class folders in train, and val/images, which is no class.
    """
    wnids = ["n01443537", "n01629819", "n01641577"]
    train = paint_classes(painter, "train/{name}/{name}_{number}.JPEG", wnids, 4)
    val = painter.paint_all("val/images/val_{}.JPEG", 4)
    return Truth(train, splits=all_in(train, "train"), numbers=numbered(wnids), left_out=val)


@kept
def unknown_as_a_class(painter: Painter) -> Truth:
    """Keras threads on flow_from_directory: test/unknown holds the unlabelled images,
    since it wants one folder.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["rock", "tree", "water"], 4)
    valid = paint_classes(
        painter, "validation/{name}/{number}.jpg", ["rock", "tree", "water"], 2, first=60
    )
    test = painter.paint_all("test/unknown/{}.jpg", 4)
    splits = all_in(train, "train") | all_in(valid, "validation")
    return Truth(
        train | valid, splits=splits, numbers=numbered(["rock", "tree", "water"]), left_out=test
    )


@kept
def all_in_one_folder(painter: Painter) -> Truth:
    """fast.ai and Keras forums: test/all holds every test image without a class."""
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["opencountry", "street"], 5)
    test = painter.paint_all("test/all/im{}.jpg", 4)
    return Truth(
        train,
        splits=all_in(train, "train"),
        numbers=numbered(["opencountry", "street"]),
        left_out=test,
    )


@kept
def plant_seedlings(painter: Painter) -> Truth:
    """Kaggle, Plant Seedlings: class folders in train, loose images in test,
    and a submission of one made-up class.
    """
    train = paint_classes(
        painter, "train/{name}/{number}a.png", ["Black-grass", "Charlock", "Maize"], 4
    )
    test = painter.paint_all("test/00{}.png", 4)
    lines = ((name_of(path), "Sugar beet") for path in test)
    painter.write("sample_submission.csv", table(("file", "species"), *lines))
    return Truth(train, splits=all_in(train, "train"), left_out=test)


@kept
def query_and_gallery(painter: Painter) -> Truth:
    """Person re-identification baselines (layumi):
    train and val of the same persons, query and gallery of others.
    """
    train = paint_classes(
        painter, "pytorch/train/{name}/{name}_c{number}.jpg", ["0002", "0007", "0011"], 4
    )
    val = paint_classes(
        painter, "pytorch/val/{name}/{name}_c{number}.jpg", ["0002", "0007", "0011"], 1, first=6
    )
    other = list(paint_classes(painter, "pytorch/query/{name}/q{number}.jpg", ["0001", "0003"], 2))
    other += list(
        paint_classes(painter, "pytorch/gallery/{name}/g{number}.jpg", ["0001", "0003"], 2)
    )
    splits = all_in(train, "train") | all_in(val, "validation")
    by_value = Truth(
        train | val, splits=splits, numbers={"0002": 2, "0007": 7, "0011": 11}, left_out=other
    )
    numbers = numbered(["0002", "0007", "0011"])
    return Truth(train | val, splits=splits, numbers=numbers, left_out=other, choices=[by_value])


# class folders with something beside or above -----------------------------------------------------


@kept
def flower_photos(painter: Painter) -> Truth:
    """TensorFlow's flower_photos: five class folders,
    and a LICENSE.txt that names every image with its licence.
    """
    classes = paint_classes(
        painter, "flower_photos/{name}/{number}_n.jpg", ["daisy", "roses", "sunflowers"], 4
    )
    names = [path.removeprefix("flower_photos/") for path in classes]
    lines = [f"{name} CC-BY by A. Person - https://example.org/{name}\n" for name in names]
    painter.write(
        "flower_photos/LICENSE.txt",
        "All images are licensed by their authors:\n\n" + "".join(lines),
    )
    return Truth(classes)


@kept
def cats_and_dogs_filtered(painter: Painter) -> Truth:
    """Google's course: the unpacked folder with its script vectorize.py,
    and the downloaded zip beside it.
    """
    train = paint_classes(
        painter, "cats_and_dogs_filtered/train/{name}/{number}.jpg", ["cats", "dogs"], 4
    )
    val = paint_classes(
        painter, "cats_and_dogs_filtered/validation/{name}/{number}.jpg", ["cats", "dogs"], 2, 2000
    )
    painter.write("cats_and_dogs_filtered/vectorize.py", "import numpy\n")
    painter.write("cats_and_dogs_filtered.zip", zip_of(painter, train | val))
    painter.write(
        "md5sums.txt", "".join(f"{number:032x}  {path}\n" for number, path in enumerate(train))
    )
    return Truth(train | val, splits=all_in(train, "train") | all_in(val, "validation"))


@kept
def imagenette_noisy(painter: Painter) -> Truth:
    """fast.ai's Imagenette: wnid folders in train and val, and noisy_imagenette.csv,
    whose labels are partly wrong.
    """
    wnids = ["n01440764", "n02102040", "n02979186"]
    train = paint_classes(painter, "train/{name}/{name}_{number}.JPEG", wnids, 5)
    val = paint_classes(painter, "val/{name}/ILSVRC2012_val_{name}_{number}.JPEG", wnids, 2)
    rows = []
    for place, (path, wnid) in enumerate((train | val).items()):
        wrong = wnids[place % 3]
        rows.append((path, wnid, wrong if place % 5 == 0 else wnid, wrong, path in val))
    header = ("path", "noisy_labels_0", "noisy_labels_1", "noisy_labels_50", "is_valid")
    painter.write("noisy_imagenette.csv", table(header, *rows))
    return Truth(train | val, splits=all_in(train, "train") | all_in(val, "validation"))


@kept
def caltech_101(painter: Painter) -> Truth:
    """Caltech-101: BACKGROUND_Google lies among the classes;
    readers take it as one, or leave it out.
    """
    pattern = "101_ObjectCategories/{name}/image_{number:04}.jpg"
    classes = paint_classes(painter, pattern, ["accordion", "airplanes", "anchor"], 4)
    clutter = paint_classes(painter, pattern, ["BACKGROUND_Google"], 4)
    return Truth(classes | clutter, choices=[Truth(classes, left_out=list(clutter))])


@kept
def caltech_256(painter: Painter) -> Truth:
    """Caltech-256: 001.ak47 to 257.clutter, with a stray folder
    056.dog/greg and a stray file RENAME2.
    """
    names = ["001.ak47", "002.american-flag", "056.dog"]
    classes = paint_classes(painter, "256_ObjectCategories/{name}/{number:04}.jpg", names, 4)
    clutter = paint_classes(
        painter, "256_ObjectCategories/{name}/{number:04}.jpg", ["257.clutter"], 3
    )
    painter.write("256_ObjectCategories/056.dog/greg/vision309/notes", "greg\n")
    painter.write("256_ObjectCategories/002.american-flag/RENAME2", "#!/bin/sh\n")
    return Truth(classes | clutter, choices=[Truth(classes, left_out=list(clutter))])


@kept
def uc_merced(painter: Painter) -> Truth:
    """UC Merced Land Use: a folder Images of class folders of TIFF files, and a readme above it."""
    names = ["agricultural", "airplane", "beach"]
    classes = paint_classes(
        painter, "UCMerced_LandUse/Images/{name}/{name}{number:02}.tif", names, 4
    )
    painter.write("UCMerced_LandUse/readme.txt", "21 classes of 100 images.\n")
    return Truth(classes)


@kept
def mvtec_bottle(painter: Painter) -> Truth:
    """MVTec AD, one object: train/good, test with good and defects,
    ground_truth with masks of the defects.
    """
    train = paint_classes(painter, "bottle/train/{name}/{number:03}.png", ["good"], 6, first=0)
    test = paint_classes(
        painter,
        "bottle/test/{name}/{number:03}.png",
        ["broken_large", "contamination", "good"],
        3,
        0,
    )
    for path, name in test.items():
        if name != "good":
            painter.write(f"bottle/ground_truth/{name}/{stem(path)}_mask.png", mask_file())
    painter.write("bottle/license.txt", "CC BY-NC-SA 4.0\n")
    return Truth(train | test, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def busi_ultrasound(painter: Painter) -> Truth:
    """Kaggle, Breast Ultrasound (BUSI): the masks lie beside the images of class folders,
    named "benign (1)_mask".
    """
    names = ["benign", "malignant", "normal"]
    classes = paint_classes(painter, "Dataset_BUSI_with_GT/{name}/{name} ({number}).png", names, 4)
    for path in classes:
        painter.write(path.replace(".png", "_mask.png"), mask_file())
    painter.write("Dataset_BUSI_with_GT/benign/benign (2)_mask_1.png", mask_file())
    return Truth(classes)


@kept
def rgbd_objects(painter: Painter) -> Truth:
    """Washington RGB-D: apple/apple_1/..._crop.png is the image,
    _depthcrop.png and _maskcrop.png are not.
    """
    classes = {}
    for name in ("apple", "ball", "banana"):
        for number in (1, 2):
            for frame in (1, 6):
                start = f"{name}/{name}_{number}/{name}_{number}_1_{frame}"
                classes[painter.paint(f"{start}_crop.png")] = name
                painter.write(f"{start}_depthcrop.png", mask_file(90))
                painter.write(f"{start}_maskcrop.png", mask_file())
    instances = {path: path.split("/")[1] for path in classes}
    return Truth(classes, choices=[Truth(instances)])


@kept
def notebook_checkpoints(painter: Painter) -> Truth:
    """Colab and Jupyter threads: an .ipynb_checkpoints folder beside the classes,
    with copies of images in it.
    """
    classes = paint_classes(painter, "{name}/{number}.jpg", ["healthy", "rust", "scab"], 4)
    copies = [painter.paint(".ipynb_checkpoints/1-checkpoint.jpg")]
    copies.append(painter.paint("rust/.ipynb_checkpoints/2-checkpoint.jpg"))
    painter.write("Untitled.ipynb", "{}\n")
    return Truth(classes, left_out=copies)


@kept
def malaria_cells(painter: Painter) -> Truth:
    """Kaggle, Malaria Cell Images: the whole folder lies a second time within itself,
    with a Thumbs.db.
    """
    names = ["Parasitized", "Uninfected"]
    classes = paint_classes(painter, "cell_images/{name}/C{number}.png", names, 4)
    for path in classes:
        copy_file(painter, path, f"cell_images/{path}")
    painter.write("cell_images/Parasitized/Thumbs.db", b"\xd0\xcf\x11\xe0")
    return Truth(classes)


@kept
def brain_tumor_twice(painter: Painter) -> Truth:
    """Kaggle, Brain MRI Images: yes and no at the top,
    and the same two below brain_tumor_dataset once more.
    """
    classes = paint_classes(painter, "{name}/Y{number}.jpg", ["no", "yes"], 5)
    for path in classes:
        copy_file(painter, path, f"brain_tumor_dataset/{path}")
    return Truth(classes)


@kept
def chest_xray_twice(painter: Painter) -> Truth:
    """Kaggle, Chest X-Ray (Pneumonia): train, val and test,
    the same three below chest_xray, and __MACOSX.
    """
    names = ["NORMAL", "PNEUMONIA"]
    train = paint_classes(painter, "train/{name}/IM-{number:04}.jpeg", names, 4)
    val = paint_classes(painter, "val/{name}/IM-{number:04}.jpeg", names, 2, first=50)
    test = paint_classes(painter, "test/{name}/IM-{number:04}.jpeg", names, 2, first=80)
    for path in train | val | test:
        copy_file(painter, path, f"chest_xray/{path}")
    painter.write("__MACOSX/chest_xray/train/NORMAL/._IM-0001.jpeg", b"\0\5\x16\7")
    splits = all_in(train, "train") | all_in(val, "validation") | all_in(test, "test")
    return Truth(train | val | test, splits=splits)


@kept
def animals_10(painter: Painter) -> Truth:
    """Kaggle, Animals-10: raw-img holds the class folders,
    translate.py beside it has English words for them.
    """
    classes = paint_classes(
        painter, "raw-img/{name}/OIP-{number}.jpeg", ["cane", "cavallo", "gatto"], 4
    )
    painter.write(
        "translate.py", 'translate = {"cane": "dog", "cavallo": "horse", "gatto": "cat"}\n'
    )
    return Truth(classes)


@kept
def lfw(painter: Painter) -> Truth:
    """Labeled Faces in the Wild: a folder a person, many with one image;
    pairs.txt and people.txt name persons.
    """
    names = ["Aaron_Eckhart", "Abdullah_Gul", "Adam_Sandler", "Zico"]
    classes = paint_classes(painter, "lfw/{name}/{name}_{number:04}.jpg", names, 1)
    classes |= paint_classes(painter, "lfw/{name}/{name}_{number:04}.jpg", names[1:3], 3, first=2)
    painter.write("pairs.txt", "10\t300\nAbdullah_Gul\t1\t3\nAaron_Eckhart\t1\tZico\t1\n")
    painter.write(
        "people.txt", "1\n4\nAaron_Eckhart\t1\nAbdullah_Gul\t4\nAdam_Sandler\t4\nZico\t1\n"
    )
    return Truth(classes)


@kept
def folders_with_a_gap(painter: Painter) -> Truth:
    """Own copies of graded sets (APTOS, KL grades of knees):
    the folders are 0, 1, 2 and 4, since no image has 3.
    """
    classes = paint_classes(painter, "{name}/{number}.png", ["0", "1", "2", "4"], 4)
    return Truth(classes, numbers={"0": 0, "1": 1, "2": 2, "4": 4})


@kept
def folders_from_one(painter: Painter) -> Truth:
    """Kaggle, number plates and sign language: the folders are 1 to 11, and 10 comes after 9."""
    names = [str(number) for number in range(1, 12)]
    return Truth(paint_classes(painter, "{name}/{number}.png", names, 2), numbers=numbered(names))


@kept
def gap_in_one_split(painter: Painter) -> Truth:
    """Knee X-rays by KL grade (Kaggle): train has 0 to 4, val lacks 2, test lacks 0;
    a grade is its own number.
    """
    train = paint_classes(painter, "train/{name}/{number}L.png", list("01234"), 3)
    val = paint_classes(painter, "val/{name}/{number}R.png", list("0134"), 2)
    test = paint_classes(painter, "test/{name}/{number}R.png", list("1234"), 2, first=40)
    splits = all_in(train, "train") | all_in(val, "validation") | all_in(test, "test")
    return Truth(
        train | val | test, splits=splits, numbers={grade: int(grade) for grade in "01234"}
    )


@kept
def udacity_dogs(painter: Painter) -> Truth:
    """Udacity's dog project: dogImages/train/001.Affenpinscher;
    valid and test lack some of the breeds.
    """
    names = ["001.Affenpinscher", "002.Afghan_hound", "057.Dalmatian", "124.Poodle"]
    train = paint_classes(painter, "dogImages/train/{name}/dog_{number:05}.jpg", names, 3)
    valid = paint_classes(
        painter, "dogImages/valid/{name}/dog_{number:05}.jpg", names[1:], 2, first=30
    )
    test = paint_classes(
        painter, "dogImages/test/{name}/dog_{number:05}.jpg", names[:2], 2, first=60
    )
    splits = all_in(train, "train") | all_in(valid, "validation") | all_in(test, "test")
    return Truth(train | valid | test, splits=splits, numbers=numbered(names))


# folders within folders ---------------------------------------------------------------------------


@kept
def office_31(painter: Painter) -> Truth:
    """Office-31: amazon/images/back_pack; the object is the class,
    and the shop or camera is a domain.
    """
    classes: dict[str, str] = {}
    for domain in ("amazon", "dslr", "webcam"):
        pattern = f"{domain}/images/{{name}}/frame_{{number:04}}.jpg"
        classes |= paint_classes(painter, pattern, ["back_pack", "bike", "mug"], 2)
    return Truth(classes)


@kept
def office_home(painter: Painter) -> Truth:
    """Office-Home: Art, Clipart and Real World of the same class folders,
    and ImageInfo.csv on their sizes.
    """
    classes: dict[str, str] = {}
    for domain in ("Art", "Clipart", "Real World"):
        classes |= paint_classes(
            painter, f"{domain}/{{name}}/{{number:05}}.jpg", ["Alarm_Clock", "Bed", "Lamp"], 2
        )
    painter.write(
        "ImageInfo.csv", table(("", "Domain", "Category", "Size(px)"), (0, "Art", "Bed", "16x12"))
    )
    return Truth(classes)


@kept
def inaturalist_2017(painter: Painter) -> Truth:
    """iNaturalist 2017: train_val_images/Aves/Corvus corax;
    the species is the class, or the kind of animal is.
    """
    species = {
        "Aves": ["Corvus corax", "Turdus merula"],
        "Insecta": ["Apis mellifera", "Vanessa atalanta"],
    }
    inner: dict[str, str] = {}
    for kind, names in species.items():
        inner |= paint_classes(
            painter, f"train_val_images/{kind}/{{name}}/{{number:08x}}.jpg", names, 4
        )
    outer = {path: path.split("/")[1] for path in inner}
    paths = {path: "/".join(path.split("/")[1:3]) for path in inner}
    return Truth(inner, must_ask=True, choices=[Truth(outer), Truth(paths)])


@kept
def omniglot_background(painter: Painter) -> Truth:
    """Omniglot: images_background/Greek/character01;
    a character of one alphabet isn't that of another.
    """
    paths: dict[str, str] = {}
    for alphabet in ("Greek", "Korean", "Latin"):
        for character in ("character01", "character02"):
            for drawer in (1, 2, 3):
                path = f"images_background/{alphabet}/{character}/0{len(paths):03}_{drawer:02}.png"
                paths[painter.paint(path)] = f"{alphabet}/{character}"
    alphabets = {path: name.partition("/")[0] for path, name in paths.items()}
    return Truth(paths, must_ask=True, choices=[Truth(alphabets)])


@kept
def plant_village(painter: Painter) -> Truth:
    """Kaggle, PlantVillage: color, grayscale and segmented hold each leaf once more;
    which one is a question.
    """
    names = ["Apple___Apple_scab", "Apple___healthy", "Corn___Common_rust"]
    variants = {}
    for variant in ("color", "grayscale", "segmented"):
        pattern = f"plantvillage dataset/{variant}/{{name}}/{{number}}.JPG"
        variants[variant] = paint_classes(painter, pattern, names, 3)
    color, gray, segmented = variants.values()
    every = color | gray | segmented
    one_of = [
        Truth(gray, left_out=[*color, *segmented]),
        Truth(segmented, left_out=[*color, *gray]),
    ]
    return Truth(
        color, left_out=[*gray, *segmented], must_ask=True, choices=[*one_of, Truth(every)]
    )


@kept
def breakhis(painter: Painter) -> Truth:
    """BreakHis: breast/benign/SOB/adenosis/SLIDE/40X;
    two tissues, four tumours and a magnification in each path.
    """
    tumours = {
        "benign": ["adenosis", "fibroadenoma"],
        "malignant": ["ductal_carcinoma", "papillary_carcinoma"],
    }
    outer: dict[str, str] = {}
    inner: dict[str, str] = {}
    for kind, names in tumours.items():
        for name in names:
            for scale in ("40X", "100X"):
                start = f"BreaKHis_v1/histology_slides/breast/{kind}/SOB/{name}/SOB_{name[0].upper()}_14-2254/{scale}"
                for path in painter.paint_all(f"{start}/SOB-{scale}-{{:03}}.png", 2, first=1):
                    outer[path], inner[path] = kind, name
    painter.write("BreaKHis_v1/README.txt", "7909 images\n")
    return Truth(outer, must_ask=True, choices=[Truth(inner)])


@kept
def sun397(painter: Painter) -> Truth:
    """SUN397: a/abbey and a/apartment_building/outdoor;
    ClassName.txt names every class with its path.
    """
    names = ["a/abbey", "a/apartment_building/outdoor", "b/bakery/shop", "b/beach"]
    classes = paint_classes(painter, "SUN397/{name}/sun_{number:04}.jpg", names, 4)
    painter.write("SUN397/ClassName.txt", "".join(f"/{name}\n" for name in names))
    painter.write("SUN397/README.txt", "SUN397\n")
    with_slash = {path: f"/{name}" for path, name in classes.items()}
    return Truth(classes, choices=[Truth(with_slash)])


@kept
def hyper_kvasir(painter: Painter) -> Truth:
    """HyperKvasir: lower-gi-tract/anatomical-landmarks/cecum;
    image-labels.csv has the finding, without .jpg.
    """
    places = {
        "cecum": "lower-gi-tract/anatomical-landmarks",
        "ileum": "lower-gi-tract/anatomical-landmarks",
        "polyps": "lower-gi-tract/pathological-findings",
        "pylorus": "upper-gi-tract/anatomical-landmarks",
    }
    classes: dict[str, str] = {}
    rows = []
    for name, place in places.items():
        for path in painter.paint_all(
            f"labeled-images/{place}/{name}/{name[:2]}{{:04x}}-8b.jpg", 3, first=2570
        ):
            classes[path] = name
            organ, kind = place.split("/")
            rows.append((stem(path), organ.replace("-", " ").title(), name, kind))
    header = ("Video file", "Organ", "Finding", "Classification")
    painter.write("labeled-images/image-labels.csv", table(header, *rows))
    return Truth(classes)


# folders without classes --------------------------------------------------------------------------


@kept
def ffhq(painter: Painter) -> Truth:
    """FFHQ: images1024x1024/00000 and 01000 hold a thousand faces each;
    the folders are no classes.
    """
    paths = painter.paint_all("images1024x1024/00000/{:05}.png", 5)
    paths += painter.paint_all("images1024x1024/01000/{:05}.png", 5, first=1000)
    paths += painter.paint_all("images1024x1024/02000/{:05}.png", 5, first=2000)
    painter.write("LICENSE.txt", "CC BY-NC-SA 4.0\n")
    return Truth(unlabelled(paths))


@kept
def div2k(painter: Painter) -> Truth:
    """DIV2K: DIV2K_train_HR and DIV2K_valid_HR hold photographs, LR_bicubic/X2 small copies;
    there are no classes.
    """
    train = painter.paint_all("DIV2K_train_HR/{:04}.png", 6, first=1, size=(32, 24))
    valid = painter.paint_all("DIV2K_valid_HR/{:04}.png", 3, first=801, size=(32, 24))
    small = painter.paint_all("DIV2K_train_LR_bicubic/X2/{:04}x2.png", 6, first=1)
    small += painter.paint_all("DIV2K_valid_LR_bicubic/X2/{:04}x2.png", 3, first=801)
    splits = all_in(train, "train") | all_in(valid, "validation")
    return Truth(unlabelled(train + valid), splits=splits, left_out=small)


@kept
def camera_card(painter: Painter) -> Truth:
    """A card of a camera: DCIM/100CANON and 101CANON hold what fits into a folder;
    they are no classes.
    """
    paths = painter.paint_all("DCIM/100CANON/IMG_{:04}.JPG", 6, first=9994)
    paths += painter.paint_all("DCIM/101CANON/IMG_{:04}.JPG", 6, first=1)
    painter.write("DCIM/CANONMSC/M0100.CTG", b"\0")
    return Truth(unlabelled(paths))


@kept
def folders_of_days(painter: Painter) -> Truth:
    """A camera trap or a phone backup: a folder a day, none of which is a class."""
    paths = []
    for day in ("2021-05-01", "2021-05-02", "2021-05-04"):
        paths += painter.paint_all(f"{day}/cam1_{{:03}}.jpg", 4)
    return Truth(unlabelled(paths))


@kept
def img2dataset_files(painter: Painter) -> Truth:
    """img2dataset with --output_format files: 00000/000000001.jpg with .txt and .json beside;
    captions, no classes.
    """
    paths = []
    for shard in ("00000", "00001"):
        for path in painter.paint_all(f"{shard}/{shard}{{:04}}.jpg", 5):
            paths.append(path)
            painter.write(path.replace(".jpg", ".txt"), f"a photo {stem(path)}")
            facts = {"caption": f"a photo {stem(path)}", "key": stem(path), "width": 16}
            painter.write(path.replace(".jpg", ".json"), json.dumps(facts))
        painter.write(f"{shard}_stats.json", '{"count": 5, "successes": 5}')
    return Truth(unlabelled(paths))


@kept
def images_and_depth(painter: Painter) -> Truth:
    """NYU Depth and SUN RGB-D exports: rgb/1.jpg has its distances in depth/1.png;
    neither folder is a class.
    """
    paths = painter.paint_all("rgb/{}.jpg", 8, first=1)
    for path in paths:
        painter.write(f"depth/{stem(path)}.png", mask_file(120))
    return Truth(unlabelled(paths))


@kept
def train_val_extra(painter: Painter) -> Truth:
    """Cityscapes' and SVHN's way: train, val and extra with one folder of images each;
    three splits, no classes.
    """
    train = painter.paint_all("train/images/{}.png", 6)
    val = painter.paint_all("val/images/{}.png", 3, first=10)
    extra = painter.paint_all("extra/images/{}.png", 4, first=20)
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(unlabelled(train + val), splits=splits, left_out=extra)


@kept
def facades(painter: Painter) -> Truth:
    """pix2pix's facades: train, val and test, with the loose pairs of pictures in each;
    no classes.
    """
    train = painter.paint_all("facades/train/{}.jpg", 6, first=1)
    val = painter.paint_all("facades/val/{}.jpg", 3, first=1)
    test = painter.paint_all("facades/test/{}.jpg", 3, first=1)
    splits = all_in(train, "train") | all_in(val, "validation") | all_in(test, "test")
    return Truth(unlabelled(train + val + test), splits=splits)


@kept
def horse2zebra(painter: Painter) -> Truth:
    """CycleGAN's horse2zebra: trainA, trainB, testA and testB are two domains in two splits."""
    parts = {"trainA": "train", "trainB": "train", "testA": "test", "testB": "test"}
    classes, splits = {}, {}
    for folder, split in parts.items():
        for path in painter.paint_all(f"{folder}/n0238_{{}}.jpg", 4):
            classes[path], splits[path] = folder[-1], split
    return Truth(classes, splits=splits, choices=[Truth(unlabelled(classes), splits=splits)])


@kept
def frames_of_one_video(painter: Painter) -> Truth:
    """A course on tracking: frames/ of one video, thumbs/ with a small copy of each; no classes."""
    frames = painter.paint_all("frames/frame_{:05}.jpg", 8, size=(32, 24))
    thumbs = painter.paint_all("thumbs/frame_{:05}.jpg", 8)
    return Truth(unlabelled(frames), left_out=thumbs)
