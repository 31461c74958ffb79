"""Images in arrays, archives, databases and columns of tables, as data sets and libraries leave
them.

An image within a file has a path of its own here: the file's path, then its name or number there. A
class that is only a number in its file is called by that number, and keeps it.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from kept_annotated import (
    CLASSES,
    SIZE,
    Boxes,
    boxes_of,
    classes_mask,
    numbered,
    only_boxes,
    only_masks,
    png,
    splits_of,
    table,
)
from kept_folders import Painter, Truth, kept, name_of, stem

from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List, encode_example
from imagenet_prep.tfrecord.framing import frame

Classes = dict[str, str | None]
"""The class of each image by its path."""


# what the builders share --------------------------------------------------------------------------


def stacked(
    painter: Painter, name: str, count: int, shape: tuple[int, ...]
) -> tuple[list[str], np.ndarray]:
    """Arrays of images in one: their paths, and N x ``shape``."""
    paths = numbered(name + "/{}", count)
    return paths, np.stack([painter.pixels(path, shape) for path in paths])


def array_a_class(
    painter: Painter, counts: Mapping[str, int], shape: tuple[int, ...], written: tuple[int, ...]
) -> Classes:
    """A .npy of images of each class, called by it; each image is ``written`` in this shape."""
    classes: Classes = {}
    for name, count in counts.items():
        paths, images = stacked(painter, f"{name}.npy", count, shape)
        painter.write(f"{name}.npy", npy(images.reshape(count, *written)))
        classes |= dict.fromkeys(paths, name)
    return classes


def labels_of(count: int, classes: int = 3, first: int = 0) -> np.ndarray:
    """Class numbers that take turns, from ``first`` on; the last one comes first."""
    return np.array([first + (classes - 1 - number) % classes for number in range(count)], np.uint8)


def by_number(paths: Sequence[str], labels: Sequence[int] | np.ndarray) -> Classes:
    """Classes that are numbers."""
    return {path: str(int(label)) for path, label in zip(paths, labels, strict=True)}


def keep_numbers(classes: Mapping[str, str | None], first: int = 0, **more: Any) -> Truth:
    """Images whose classes are numbers that stay as they are;
    ``first`` is the smallest that their format has.
    """
    names = sorted({name for name in classes.values() if name is not None})
    return Truth(classes, numbers={name: int(name) - first for name in names}, **more)


def npy(values: np.ndarray) -> bytes:
    """An .npy of one array."""
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def npz(*values: np.ndarray, **named: np.ndarray) -> bytes:
    """An .npz of several arrays; those without a name are arr_0, arr_1."""
    stream = io.BytesIO()
    np.savez_compressed(stream, *values, **named)  # type: ignore[arg-type]
    return stream.getvalue()


def tar(members: Mapping[str, bytes], mode: str = "w") -> bytes:
    """A tar of files in this order, compressed as ``mode`` says."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip of files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def pack(
    painter: Painter, archive: str, classes: Mapping[str, str | None]
) -> tuple[dict[str, bytes], Classes]:
    """The members of an archive: images by their names there,
    and the class of each by its path here.
    """
    members = {name: painter.encode(f"{archive}/{name}") for name in classes}
    return members, {f"{archive}/{name}": class_name for name, class_name in classes.items()}


def in_class_folders(pattern: str, count: int, names: Sequence[str] = CLASSES) -> dict[str, str]:
    """Names of images by a pattern of a class and a number, and their classes."""
    return {pattern.format(name, number): name for name in names for number in range(count)}


# arrays -------------------------------------------------------------------------------------------


@kept
def kuzushiji_mnist(painter: Painter) -> Truth:
    """KMNIST: kmnist-train-imgs.npz and kmnist-train-labels.npz, each with one array arr_0;
    the same of the test.
    """
    classes: Classes = {}
    for split, count in {"train": 8, "test": 4}.items():
        paths, images = stacked(painter, f"kmnist-{split}-imgs.npz", count, (28, 28))
        labels = labels_of(count)
        painter.write(f"kmnist-{split}-imgs.npz", npz(images))
        painter.write(f"kmnist-{split}-labels.npz", npz(labels))
        classes |= by_number(paths, labels)
    return keep_numbers(
        classes, splits=splits_of(classes, train="kmnist-train", test="kmnist-test")
    )


@kept
def quick_draw(painter: Painter) -> Truth:
    """Quick, Draw!: one .npy a class, called by it, of N drawings of 784 numbers."""
    counts = {"aircraft carrier": 3, "cat": 4, "zigzag": 3}
    return Truth(array_a_class(painter, counts, (28, 28), (784,)))


@kept
def one_array_a_class(painter: Painter) -> Truth:
    """Arrays by class as a lab keeps them: healthy.npy and sick.npy of N x height x width x 3,
    beside a README.
    """
    shape = (12, 16, 3)
    classes = array_a_class(painter, {"healthy": 5, "sick": 3}, shape, shape)
    painter.write("README.txt", "RGB, uint8\n")
    return Truth(classes)


@kept
def mean_beside_the_arrays(painter: Painter) -> Truth:
    """x_train.npy, y_train.npy, x_test.npy, y_test.npy,
    and mean.npy and std.npy of the pixels beside them.
    """
    classes: Classes = {}
    for split, count in {"train": 7, "test": 3}.items():
        paths, images = stacked(painter, f"x_{split}.npy", count, (12, 16, 3))
        labels = labels_of(count)
        painter.write(f"x_{split}.npy", npy(images))
        painter.write(f"y_{split}.npy", npy(labels))
        classes |= by_number(paths, labels)
    painter.write("mean.npy", npy(np.full((12, 16, 3), 0.5, np.float32)))
    painter.write("std.npy", npy(np.full((12, 16, 3), 0.25, np.float32)))
    return keep_numbers(classes, splits=splits_of(classes, train="x_train", test="x_test"))


@kept
def sign_language_digits(painter: Painter) -> Truth:
    """Kaggle's Sign Language Digits: X.npy of images, Y.npy of one-hot rows of floats."""
    paths, images = stacked(painter, "X.npy", 9, (16, 16))
    labels = labels_of(9)
    painter.write("X.npy", npy(images))
    painter.write("Y.npy", npy(np.eye(3)[labels]))
    return keep_numbers(by_number(paths, labels))


@kept
def npz_of_unnamed_arrays(painter: Painter) -> Truth:
    """np.savez(file, images, labels) of a notebook: arr_0 and arr_1."""
    paths, images = stacked(painter, "dataset.npz", 9, (12, 16, 3))
    labels = labels_of(9)
    painter.write("dataset.npz", npz(images, labels.astype(np.int64)))
    return keep_numbers(by_number(paths, labels))


@kept
def celebrity_faces(painter: Painter) -> Truth:
    """The 5-celebrity faces of a tutorial: one .npz, arr_0 to arr_3:
    train images, train names, test images, names.
    """
    names = np.array(["ben_afflek", "elton_john", "madonna"])
    train, train_images = stacked(painter, "faces.npz/arr_0", 7, (16, 16, 3))
    test, test_images = stacked(painter, "faces.npz/arr_2", 3, (16, 16, 3))
    train_names, test_names = names[labels_of(7)], names[labels_of(3)]
    painter.write("faces.npz", npz(train_images, train_names, test_images, test_names))
    classes: Classes = dict(
        zip(train + test, [*train_names.tolist(), *test_names.tolist()], strict=True)
    )
    splits = {**dict.fromkeys(train, "train"), **dict.fromkeys(test, "test")}
    return Truth(classes, splits=splits)


@kept
def medmnist_of_several_labels(painter: Painter) -> Truth:
    """MedMNIST's ChestMNIST: train_images, val_images, test_images,
    and labels of N x 14 zeros and ones.
    """
    findings: dict[str, tuple[str, ...] | str | None] = {}
    splits: dict[str, str] = {}
    arrays = {}
    for split, count in {"train": 6, "val": 3, "test": 3}.items():
        paths, arrays[f"{split}_images"] = stacked(
            painter, f"chestmnist.npz/{split}", count, (28, 28)
        )
        labels = np.zeros((count, 14), np.uint8)
        for number, path in enumerate(paths):
            labels[number, [number % 3, 5 + number % 2]] = 1
            findings[path] = (str(number % 3), str(5 + number % 2))
        arrays[f"{split}_labels"] = labels
        splits |= dict.fromkeys(paths, "validation" if split == "val" else split)
    painter.write("chestmnist.npz", npz(**arrays))
    numbers = {str(number): number for number in range(14)}
    vectors = Truth(dict.fromkeys(findings), splits=splits)
    return Truth(findings, splits=splits, numbers=numbers, choices=[vectors])


@kept
def two_sets_of_medmnist(painter: Painter) -> Truth:
    """A folder of downloads: bloodmnist.npz and pathmnist.npz, whose numbers mean other classes;
    a person takes one.
    """
    truths = []
    for name in ("bloodmnist", "pathmnist"):
        classes: Classes = {}
        splits: dict[str, str] = {}
        arrays = {}
        for split, count in {"train": 6, "val": 2, "test": 2}.items():
            paths, arrays[f"{split}_images"] = stacked(
                painter, f"{name}.npz/{split}", count, (28, 28, 3)
            )
            labels = labels_of(count)
            arrays[f"{split}_labels"] = labels[:, None]
            classes |= by_number(paths, labels)
            splits |= dict.fromkeys(paths, "validation" if split == "val" else split)
        painter.write(f"{name}.npz", npz(**arrays))
        truths.append(keep_numbers(classes, splits=splits))
    blood, path_truth = truths
    return Truth(
        blood.classes,
        splits=blood.splits,
        numbers=blood.numbers,
        choices=[path_truth],
        must_ask=True,
    )


@kept
def arrays_of_other_names(painter: Painter) -> Truth:
    """A lab's data.npz with "faces", "emotions" and "subject":
    a person knows by the shapes which is which; or asks.
    """
    paths, images = stacked(painter, "data.npz", 9, (24, 24))
    emotions = labels_of(9)
    subjects = labels_of(9, 2)
    painter.write("data.npz", npz(faces=images, emotions=emotions, subject=subjects))
    by_subject = keep_numbers(by_number(paths, subjects))
    return keep_numbers(by_number(paths, emotions), choices=[by_subject], must_ask=True)


@kept
def stl_10(painter: Painter) -> Truth:
    """STL-10's binaries: train_X.bin, 96 x 96 x 3 by channel and column;
    train_y.bin from 1 on; class_names.txt.
    """
    names = ("airplane", "bird", "car")
    classes: Classes = {}
    for split, count in {"train": 6, "test": 3}.items():
        paths, images = stacked(painter, f"{split}_X.bin", count, (96, 96, 3))
        labels = labels_of(count, first=1)
        painter.write(f"{split}_X.bin", images.transpose(0, 3, 2, 1).tobytes())
        painter.write(f"{split}_y.bin", labels.tobytes())
        classes |= {path: names[label - 1] for path, label in zip(paths, labels, strict=True)}
    painter.write("class_names.txt", "".join(f"{name}\n" for name in names))
    numbers = {name: number for number, name in enumerate(names)}
    return Truth(
        classes, splits=splits_of(classes, train="train_X", test="test_X"), numbers=numbers
    )


@kept
def cifar_10_binary(painter: Painter) -> Truth:
    """CIFAR-10's binary version: data_batch_1.bin of a label and 3,072 bytes each;
    batches.meta.txt has the names.
    """
    names = ("airplane", "automobile", "bird")
    classes: Classes = {}
    for name, count in {"data_batch_1": 4, "data_batch_2": 4, "test_batch": 3}.items():
        paths, images = stacked(painter, f"{name}.bin", count, (32, 32, 3))
        labels = labels_of(count)
        rows = [
            bytes([label]) + image.transpose(2, 0, 1).tobytes()
            for label, image in zip(labels, images, strict=True)
        ]
        painter.write(f"{name}.bin", b"".join(rows))
        classes |= {path: names[label] for path, label in zip(paths, labels, strict=True)}
    painter.write("batches.meta.txt", "".join(f"{name}\n" for name in names))
    numbers = {name: number for number, name in enumerate(names)}
    return Truth(
        classes, splits=splits_of(classes, train="data_batch", test="test_batch"), numbers=numbers
    )


@kept
def udacity_traffic_signs(painter: Painter) -> Truth:
    """Udacity's traffic signs: train.p, valid.p and test.p,
    pickles of features, labels, sizes and coords.
    """
    classes: Classes = {}
    for split, count in {"train": 6, "valid": 3, "test": 3}.items():
        paths, images = stacked(painter, f"{split}.p", count, (32, 32, 3))
        labels = labels_of(count)
        sizes = np.full((count, 2), 32, np.uint8)
        coords = np.full((count, 4), 5, np.uint8)
        value = {"features": images, "labels": labels, "sizes": sizes, "coords": coords}
        painter.write(f"{split}.p", pickle.dumps(value, 2))
        classes |= by_number(paths, labels)
    painter.write("signnames.csv", "ClassId,SignName\n0,Speed limit (20km/h)\n1,Stop\n2,Yield\n")
    signs = {"0": "Speed limit (20km/h)", "1": "Stop", "2": "Yield"}
    splits = splits_of(classes, train="train.p", validation="valid.p", test="test.p")
    named = Truth({path: signs[str(name)] for path, name in classes.items()}, splits=splits)
    return keep_numbers(classes, splits=splits, choices=[named])


@kept
def pickled_object_array(painter: Painter) -> Truth:
    """np.save of a list of (image, label), as a tutorial has it: a pickle that must not run;
    a person asks.
    """
    paths, images = stacked(painter, "training_data.npy", 6, (16, 16))
    labels = labels_of(6, 2)
    rows = np.empty((6, 2), object)
    for number in range(6):
        rows[number, 0] = images[number]
        rows[number, 1] = int(labels[number])
    stream = io.BytesIO()
    np.save(stream, rows, allow_pickle=True)
    painter.write("training_data.npy", stream.getvalue())
    return keep_numbers(by_number(paths, labels), must_ask=True)


# numbers in a CSV ---------------------------------------------------------------------------------


@kept
def fashion_mnist_csv(painter: Painter) -> Truth:
    """Kaggle's Fashion MNIST: fashion-mnist_train.csv and _test.csv of
    label,pixel1,...,pixel784.
    """
    classes: Classes = {}
    header = ",".join(["label", *(f"pixel{number}" for number in range(1, 785))])
    for split, count in {"train": 6, "test": 3}.items():
        paths, images = stacked(painter, f"fashion-mnist_{split}.csv", count, (28, 28))
        labels = labels_of(count)
        rows = np.hstack([labels[:, None], images.reshape(count, 784)]).tolist()
        painter.write(f"fashion-mnist_{split}.csv", table(rows, header))
        classes |= by_number(paths, labels)
    splits = splits_of(classes, train="fashion-mnist_train", test="fashion-mnist_test")
    return keep_numbers(classes, splits=splits)


@kept
def digit_recognizer(painter: Painter) -> Truth:
    """Kaggle's Digit Recognizer: train.csv of label,pixel0,...; test.csv of the pixels alone."""
    header = ",".join(f"pixel{number}" for number in range(784))
    train, images = stacked(painter, "train.csv", 6, (28, 28))
    labels = labels_of(6)
    rows = np.hstack([labels[:, None], images.reshape(6, 784)]).tolist()
    painter.write("train.csv", table(rows, f"label,{header}"))
    test, images = stacked(painter, "test.csv", 3, (28, 28))
    painter.write("test.csv", table(images.reshape(3, 784).tolist(), header))
    painter.write("sample_submission.csv", "ImageId,Label\n1,0\n2,0\n3,0\n")
    classes: Classes = {**by_number(train, labels), **dict.fromkeys(test)}
    return keep_numbers(
        classes, splits=splits_of(classes, train="train", test="test"), left_out=test
    )


@kept
def fer_2013(painter: Painter) -> Truth:
    """FER-2013: fer2013.csv of emotion, pixels as one text of 2,304 numbers,
    and Usage, which is the split.
    """
    usages = {"Training": "train", "PublicTest": "validation", "PrivateTest": "test"}
    paths, images = stacked(painter, "fer2013.csv", 9, (48, 48))
    labels = labels_of(9)
    rows = []
    splits = {}
    for number, path in enumerate(paths):
        usage = list(usages)[max(0, number - 6)] if number > 6 else "Training"
        splits[path] = usages[usage]
        rows.append([labels[number], " ".join(map(str, images[number].ravel())), usage])
    painter.write("fer2013.csv", table(rows, "emotion,pixels,Usage"))
    return keep_numbers(by_number(paths, labels), splits=splits)


# MATLAB and HDF5 ----------------------------------------------------------------------------------


def mat_element(kind: int, data: bytes) -> bytes:
    """An element of a MATLAB 5 file: its type, its length, and its bytes up to a multiple of 8."""
    return struct.pack("<2I", kind, len(data)) + data + bytes(-len(data) % 8)


def mat_matrix(name: str, value: Any) -> bytes:
    """A matrix: an array of bytes or floats, a text, texts (a cell array),
    a mapping or several alike (structures).
    """
    if isinstance(value, Mapping):
        return mat_matrix(name, [value])
    if isinstance(value, list) and isinstance(value[0], Mapping):
        class_number, shape = 2, (1, len(value))
        fields = b"".join(field.encode().ljust(32, b"\0") for field in value[0])
        parts = [mat_element(5, struct.pack("<i", 32)), mat_element(1, fields)]
        for structure in value:
            parts += [mat_matrix("", content) for content in structure.values()]
    elif isinstance(value, list):
        class_number, shape = 1, (1, len(value))
        parts = [mat_matrix("", content) for content in value]
    elif isinstance(value, str):
        class_number, shape = 4, (1, len(value))
        parts = [mat_element(4, value.encode("utf-16-le"))]
    else:
        array = np.asarray(value)
        is_bytes = array.dtype == np.uint8
        class_number, shape = 9 if is_bytes else 6, array.shape
        stored = array if is_bytes else array.astype("<f8")
        parts = [mat_element(2 if is_bytes else 9, stored.tobytes("F"))]
    head = mat_element(6, struct.pack("<2I", class_number, 0))
    sizes = mat_element(5, struct.pack(f"<{len(shape)}i", *shape))
    return mat_element(14, b"".join([head, sizes, mat_element(1, name.encode()), *parts]))


def mat(**matrices: Any) -> bytes:
    """A MATLAB 5 file."""
    head = (
        b"MATLAB 5.0 MAT-file, Platform: PCWIN64".ljust(116)
        + bytes(8)
        + struct.pack("<H2s", 0x0100, b"IM")
    )
    return head + b"".join(mat_matrix(name, value) for name, value in matrices.items())


@kept
def svhn_cropped(painter: Painter) -> Truth:
    """SVHN's format 2: train_32x32.mat with X of 32 x 32 x 3 x N,
    and y from 1 to 10, where 10 is the digit 0.
    """
    classes: Classes = {}
    for split, count in {"train": 6, "test": 3}.items():
        paths, images = stacked(painter, f"{split}_32x32.mat", count, (32, 32, 3))
        labels = labels_of(count, first=8)
        painter.write(f"{split}_32x32.mat", mat(X=images.transpose(1, 2, 3, 0), y=labels[:, None]))
        classes |= by_number(paths, labels)
    splits = splits_of(classes, train="train_32x32", test="test_32x32")
    digits = {path: "0" if name == "10" else name for path, name in classes.items()}
    return keep_numbers(classes, 1, splits=splits, choices=[keep_numbers(digits, splits=splits)])


@kept
def emnist_letters(painter: Painter) -> Truth:
    """EMNIST's emnist-letters.mat: a structure of train and test, whose images are columns of 784;
    labels from 1.
    """
    classes: Classes = {}
    splits: dict[str, str] = {}
    parts: dict[str, Any] = {}
    for split, count in {"train": 6, "test": 3}.items():
        paths, images = stacked(painter, f"emnist-letters.mat/{split}", count, (28, 28))
        labels = labels_of(count, first=1)
        columns = images.transpose(0, 2, 1).reshape(count, 784)
        parts[split] = {
            "images": columns,
            "labels": labels[:, None].astype(float),
            "writers": labels[:, None],
        }
        classes |= by_number(paths, labels)
        splits |= dict.fromkeys(paths, split)
    mapping = np.array([[number, 64 + number, 96 + number] for number in range(1, 4)], float)
    painter.write("emnist-letters.mat", mat(dataset={**parts, "mapping": mapping}))
    letters = Truth(
        {path: "ABC"[int(str(name)) - 1] for path, name in classes.items()}, splits=splits
    )
    return keep_numbers(classes, 1, splits=splits, choices=[letters])


@kept
def oxford_flowers_102(painter: Painter) -> Truth:
    """Oxford Flowers 102: jpg/image_00001.jpg, imagelabels.mat in the order of names,
    setid.mat of the splits.
    """
    paths = painter.paint_all("jpg/image_{:05}.jpg", 9, 1)
    labels = labels_of(9, first=1)
    setid = {"trnid": [1, 2, 3, 4], "valid": [5, 6], "tstid": [7, 8, 9]}
    painter.write("imagelabels.mat", mat(labels=labels[None, :]))
    painter.write("setid.mat", mat(**{name: np.array([ids], float) for name, ids in setid.items()}))
    splits: dict[str, str] = {}
    for split, ids in zip(("train", "validation", "test"), setid.values(), strict=True):
        splits |= {paths[number - 1]: split for number in ids}
    return keep_numbers(by_number(paths, labels), 1, splits=splits)


@kept
def stanford_cars(painter: Painter) -> Truth:
    """Stanford Cars: cars_train/00001.jpg, and devkit/cars_train_annos.mat of a box,
    a class and a file name each.
    """
    names = ("AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Acura TL Sedan 2012")
    classes: Classes = {}
    boxes: Boxes = {}
    rows = []
    for number, label in enumerate(labels_of(7, first=1)):
        path = painter.paint(f"cars_train/{number + 1:05}.jpg", SIZE)
        _, *corners = boxes_of(number)[0]
        classes[path] = names[label - 1]
        xmin, ymin, xmax, ymax = corners
        boxes[path] = [(names[label - 1], xmin, ymin, xmax, ymax)]
        keys = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class")
        row: dict[str, Any] = {
            key: np.full((1, 1), value, np.uint8)
            for key, value in zip(keys, [*corners, label], strict=True)
        }
        rows.append({**row, "fname": name_of(path)})
    painter.write("devkit/cars_train_annos.mat", mat(annotations=rows))
    painter.write("devkit/cars_meta.mat", mat(class_names=list(names)))
    numbers = {name: number for number, name in enumerate(names)}
    with_boxes = Truth(classes, boxes=boxes, numbers=numbers)
    return Truth(classes, numbers=numbers, choices=[with_boxes, only_boxes(boxes)])


def hdf5(**values: Any) -> bytes:
    """An HDF5 file; a test without h5py is skipped."""
    h5py = pytest.importorskip("h5py")
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for name, value in values.items():
            file.create_dataset(name, data=value)
    return stream.getvalue()


@kept
def patch_camelyon(painter: Painter) -> Truth:
    """PatchCamelyon: camelyonpatch_level_2_split_train_x.h5 and _y.h5 of N x 1 x 1 x 1,
    the same of valid and test.
    """
    classes: Classes = {}
    top = "camelyonpatch_level_2_split"
    for split, count in {"train": 5, "valid": 3, "test": 2}.items():
        paths, images = stacked(painter, f"{top}_{split}_x.h5", count, (96, 96, 3))
        labels = labels_of(count, 2)
        painter.write(f"{top}_{split}_x.h5", hdf5(x=images))
        painter.write(f"{top}_{split}_y.h5", hdf5(y=labels[:, None, None, None]))
        classes |= by_number(paths, labels)
    splits = splits_of(classes, train=f"{top}_train", validation=f"{top}_valid", test=f"{top}_test")
    return keep_numbers(classes, splits=splits)


@kept
def cats_of_a_course(painter: Painter) -> Truth:
    """A deep learning course's train_catvnoncat.h5: train_set_x, train_set_y, list_classes;
    the same of the test.
    """
    names = np.array([b"non-cat", b"cat"])
    classes: Classes = {}
    for split, count in {"train": 6, "test": 3}.items():
        paths, images = stacked(painter, f"{split}_catvnoncat.h5", count, (64, 64, 3))
        labels = labels_of(count, 2)
        values = {
            f"{split}_set_x": images,
            f"{split}_set_y": labels.astype(np.int64),
            "list_classes": names,
        }
        painter.write(f"{split}_catvnoncat.h5", hdf5(**values))
        classes |= {
            path: ("non-cat", "cat")[label] for path, label in zip(paths, labels, strict=True)
        }
    splits = splits_of(classes, train="train_catvnoncat", test="test_catvnoncat")
    return Truth(classes, splits=splits, numbers={"non-cat": 0, "cat": 1})


# tars and zips of class folders -------------------------------------------------------------------


@kept
def tar_with_a_table_in_it(painter: Painter) -> Truth:
    """A shared tar: images/0001.jpg in one folder, and labels.csv among its members."""
    names = numbered("images/{:04}.jpg", 8)
    members, classes = pack(
        painter, "pets.tar", {name: CLASSES[place % 2] for place, name in enumerate(names)}
    )
    rows = [(name, classes[f"pets.tar/{name}"]) for name in names]
    painter.write(
        "pets.tar", tar({**members, "labels.csv": table(rows, "filename,label").encode()})
    )
    return Truth(classes)


@kept
def tar_of_class_folders_with_a_table(painter: Painter) -> Truth:
    """A tar of class folders with metadata.csv beside them, which has the weight of each animal."""
    members, classes = pack(painter, "animals.tar", in_class_folders("animals/{0}/{0}_{1}.jpg", 4))
    rows = [(name, 3 + place) for place, name in enumerate(members)]
    painter.write(
        "animals.tar", tar({**members, "animals/metadata.csv": table(rows, "path,weight").encode()})
    )
    return Truth(classes)


@kept
def zip_beside_a_table(painter: Painter) -> Truth:
    """A competition's download: train_images.zip of images without folders,
    and train.csv of image_id,label.
    """
    names = numbered("{:08x}.jpg", 8)
    members, classes = pack(
        painter, "train_images.zip", {name: CLASSES[place % 2] for place, name in enumerate(names)}
    )
    painter.write("train_images.zip", zipped(members))
    rows = [(name, classes[f"train_images.zip/{name}"]) for name in names]
    painter.write("train.csv", table(rows, "image_id,label"))
    return Truth(classes)


@kept
def compressed_tar_beside_a_table(painter: Painter) -> Truth:
    """A university's page: images.tar.gz of images/0001.jpg,
    and labels.csv of filename,species beside it.
    """
    names = numbered("images/{:04}.jpg", 8)
    members, classes = pack(
        painter, "images.tar.gz", {name: CLASSES[place % 2] for place, name in enumerate(names)}
    )
    painter.write("images.tar.gz", tar(members, "w:gz"))
    rows = [(name_of(name), classes[f"images.tar.gz/{name}"]) for name in names]
    painter.write("labels.csv", table(rows, "filename,species"))
    return Truth(classes)


@kept
def compressed_tar_of_classes(painter: Painter) -> Truth:
    """TensorFlow's flower_photos.tgz: class folders in a folder, with LICENSE.txt."""
    names = in_class_folders("flower_photos/{0}/{1}_abc.jpg", 4, ("daisy", "roses"))
    members, classes = pack(painter, "flower_photos.tgz", names)
    painter.write(
        "flower_photos.tgz", tar({**members, "flower_photos/LICENSE.txt": b"CC-BY\n"}, "w:gz")
    )
    return Truth(classes)


@kept
def zip_of_class_folders(painter: Painter) -> Truth:
    """A data set as it was downloaded: archive.zip of train and test with class folders,
    and macOS's own files.
    """
    classes: Classes = {}
    members: dict[str, bytes] = {}
    for split, count in {"train": 3, "test": 2}.items():
        packed, known = pack(
            painter, "archive.zip", in_class_folders(split + "/{0}/{0}.{1}.jpg", count)
        )
        members |= packed
        classes |= known
    painter.write("archive.zip", zipped({**members, "__MACOSX/train/cat/._cat.0.jpg": b"Mac OS X"}))
    return Truth(
        classes, splits=splits_of(classes, train="archive.zip/train/", test="archive.zip/test/")
    )


@kept
def zip_a_class(painter: Painter) -> Truth:
    """One zip a class, as a shared drive gives folders: healthy.zip, rust.zip, blight.zip."""
    classes: Classes = {}
    for name in ("blight", "healthy", "rust"):
        members, known = pack(
            painter, f"{name}.zip", dict.fromkeys(numbered("IMG_{:03}.jpg", 3), name)
        )
        painter.write(f"{name}.zip", zipped(members))
        classes |= known
    return Truth(classes)


@kept
def dogs_vs_cats_zips(painter: Painter) -> Truth:
    """Kaggle's Dogs vs. Cats as downloaded: train.zip of train/cat.0.jpg,
    and test1.zip without classes.
    """
    train, classes = pack(painter, "train.zip", in_class_folders("train/{0}.{1}.jpg", 4))
    test, tests = pack(painter, "test1.zip", dict.fromkeys(numbered("test1/{}.jpg", 3, 1)))
    painter.write("train.zip", zipped(train))
    painter.write("test1.zip", zipped(test))
    full = {**classes, **tests}
    splits = splits_of(full, train="train.zip", test="test1.zip")
    return Truth(
        full, splits=splits, left_out=list(tests), choices=[Truth(classes, left_out=list(tests))]
    )


@kept
def tars_of_parts(painter: Painter) -> Truth:
    """A crawl in numbered tars, images_00.tar and images_01.tar,
    with labels.tsv of one line an image beside.
    """
    classes: Classes = {}
    rows = []
    for part in range(2):
        names = numbered(f"{part:02}" + "{:04}.jpg", 4)
        known = {name: CLASSES[place % 2] for place, name in enumerate(names)}
        members, packed = pack(painter, f"images_{part:02}.tar", known)
        painter.write(f"images_{part:02}.tar", tar(members))
        rows += [f"{name}\t{class_name}\n" for name, class_name in known.items()]
        classes |= packed
    painter.write("labels.tsv", "".join(["file\tlabel\n", *rows]))
    return Truth(classes)


@kept
def not_mnist(painter: Painter) -> Truth:
    """notMNIST_small: folders A to C of PNGs, one of which is empty and one cut,
    as everybody's notebook finds out.
    """
    classes: Classes = {}
    for name in "ABC":
        for path in painter.paint_all(f"{name}/Q2{name.lower()}zc{{:02}}.png", 4):
            classes[path] = name
    painter.write("A/Q0RlbW9jcmF0aWNhLnR0Zg==.png", b"")
    painter.write("C/broken.png", painter.encode("C/broken.png")[:40])
    return Truth(classes)


# WebDataset ---------------------------------------------------------------------------------------


def web(painter: Painter, archive: str, samples: Mapping[str, Mapping[str, bytes]]) -> list[str]:
    """A tar of an image and other members for each key; the images' paths."""
    members = {}
    paths = []
    for key, others in samples.items():
        paths.append(f"{archive}/{key}.jpg")
        members[f"{key}.jpg"] = painter.encode(paths[-1])
        members |= {f"{key}.{ending}": content for ending, content in others.items()}
    painter.write(archive, tar(members))
    return paths


@kept
def web_of_three_members(painter: Painter) -> Truth:
    """WebDataset with .jpg, .cls, .json and .txt a sample:
    the class is a number, the JSON and caption are more.
    """
    classes: Classes = {}
    for part in range(2):
        samples = {}
        for number in range(4):
            meta = json.dumps({"width": 16, "height": 12, "source": "web", "id": number}).encode()
            samples[f"{part}{number:05}"] = {
                "cls": b"%d" % (number % 3),
                "json": meta,
                "txt": b"a photograph",
            }
        paths = web(painter, f"shard-{part:06}.tar", samples)
        classes |= by_number(paths, [0, 1, 2, 0])
    return keep_numbers(classes)


@kept
def web_in_split_folders(painter: Painter) -> Truth:
    """WebDataset as train/00000.tar, train/00001.tar and val/00000.tar,
    with words in .cls and sizes.json.
    """
    classes: Classes = {}
    for name in ("train/00000.tar", "train/00001.tar", "val/00000.tar"):
        samples = {f"{number:04}": {"cls": CLASSES[number % 2].encode()} for number in range(4)}
        paths = web(painter, name, samples)
        classes |= {path: CLASSES[place % 2] for place, path in enumerate(paths)}
        painter.write(f"{name.partition('/')[0]}/sizes.json", '{"00000.tar": 4}')
    return Truth(classes, splits=splits_of(classes, train="train/", validation="val/"))


@kept
def web_with_masks(painter: Painter) -> Truth:
    """WebDataset of segmentation: .jpg and .seg.png a sample, no class."""
    masks: dict[str, np.ndarray] = {}
    samples = {f"{number:05}": {"seg.png": png(classes_mask(number))} for number in range(7)}
    for number, path in enumerate(web(painter, "seg-000000.tar", samples)):
        masks[path] = classes_mask(number)
    return only_masks(masks, choices=[Truth(dict.fromkeys(masks))])


@kept
def web_of_labels_in_json(painter: Painter) -> Truth:
    """WebDataset whose JSON alone has the class, {"label": 2, "classname":
    "owl"}, as clip-benchmark's exports.
    """
    names = ("ant", "bee", "owl")
    labels = labels_of(8)
    samples = {}
    for number, label in enumerate(labels.tolist()):
        value = {"label": label, "classname": names[label], "split": "train"}
        samples[f"s{number:07}"] = {"json": json.dumps(value).encode()}
    paths = web(painter, "train/0.tar", samples)
    painter.write("classnames.txt", "ant\nbee\nowl\n")
    named: Classes = {path: names[label] for path, label in zip(paths, labels, strict=True)}
    numbers = {name: number for number, name in enumerate(names)}
    splits = dict.fromkeys(paths, "train")
    choices = [
        keep_numbers(by_number(paths, labels)),
        keep_numbers(by_number(paths, labels), splits=splits),
    ]
    return Truth(
        named, numbers=numbers, splits=splits, choices=[*choices, Truth(named, numbers=numbers)]
    )


@kept
def web_with_embeddings(painter: Painter) -> Truth:
    """WebDataset with .npy features of a network beside .jpg and .cls."""
    samples = {}
    for number in range(8):
        samples[f"{number:06}"] = {
            "cls": b"%d" % (number % 3),
            "npy": npy(np.arange(4, dtype=np.float32)),
        }
    paths = web(painter, "features-{000000}.tar".replace("{", "").replace("}", ""), samples)
    return keep_numbers(by_number(paths, [number % 3 for number in range(8)]))


@kept
def img2dataset_with_failures(painter: Painter) -> Truth:
    """img2dataset's output: 00000.tar with captions, 00000_stats.json, 00000.parquet;
    failed rows have no image.
    """
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    keys = numbered("{:09}", 8)
    samples = {}
    for key in keys[:6]:
        meta = {
            "caption": f"a thing {key}",
            "url": f"https://x/{key}.jpg",
            "key": key,
            "status": "success",
        }
        samples[key] = {"json": json.dumps(meta).encode(), "txt": f"a thing {key}".encode()}
    paths = web(painter, "00000.tar", samples)
    status = ["success"] * 6 + ["failed_to_download"] * 2
    rows = pa.table(
        {"url": [f"https://x/{key}.jpg" for key in keys], "key": keys, "status": status}
    )
    stream = io.BytesIO()
    parquet.write_table(rows, stream)
    painter.write("00000.parquet", stream.getvalue())
    painter.write(
        "00000_stats.json", json.dumps({"count": 8, "successes": 6, "failed_to_download": 2})
    )
    return Truth(dict.fromkeys(paths))


# columns of tables --------------------------------------------------------------------------------


def image_cells(
    painter: Painter, paths: Sequence[str], size: tuple[int, int] = (16, 12)
) -> list[dict[str, Any]]:
    """Images as Hugging Face's datasets keep them."""
    return [{"bytes": painter.encode(path, size), "path": name_of(path)} for path in paths]


def feature_of(names: Sequence[str]) -> dict[str, Any]:
    """The description of an image and a class that Hugging Face's datasets store."""
    return {"image": {"_type": "Image"}, "label": {"names": list(names), "_type": "ClassLabel"}}


def described(columns: Mapping[str, Any], features: Mapping[str, Any]) -> Any:
    """A table whose schema has the description."""
    pa = pytest.importorskip("pyarrow")
    return pa.table(dict(columns)).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )


def arrow(rows: Any) -> bytes:
    """A table as a stream of Arrow, as Hugging Face's datasets save it."""
    pa = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    return stream.getvalue()


def parquet_of(rows: Any) -> bytes:
    """A table as Parquet."""
    parquet = pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    parquet.write_table(rows, stream)
    return stream.getvalue()


def saved_to_disk(painter: Painter, folder: str, split: str, count: int, parts: int = 1) -> Classes:
    """What Dataset.save_to_disk leaves in a folder."""
    names = ("angular_leaf_spot", "bean_rust", "healthy")
    classes: Classes = {}
    files = []
    for part in range(parts):
        files.append(f"data-{part:05}-of-{parts:05}.arrow")
        paths = numbered(f"{folder}{files[-1]}/" + "{}.jpg", count)
        labels = labels_of(count).astype(np.int64)
        columns = {"image": image_cells(painter, paths), "label": labels}
        painter.write(f"{folder}{files[-1]}", arrow(described(columns, feature_of(names))))
        classes |= {path: names[label] for path, label in zip(paths, labels, strict=True)}
    state = {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": "9b0a",
        "_split": split,
    }
    painter.write(
        f"{folder}state.json", json.dumps({**state, "_format_type": None, "_format_columns": None})
    )
    info = {
        "features": feature_of(names),
        "builder_name": "beans",
        "splits": {split: {"num_examples": count * parts}},
    }
    painter.write(f"{folder}dataset_info.json", json.dumps(info))
    return classes


LEAVES = {"angular_leaf_spot": 0, "bean_rust": 1, "healthy": 2}


@kept
def dataset_saved_to_disk(painter: Painter) -> Truth:
    """Hugging Face's Dataset.save_to_disk: two .arrow files, state.json, dataset_info.json;
    _split is train.
    """
    classes = saved_to_disk(painter, "", "train", 4, parts=2)
    return Truth(classes, numbers=LEAVES, splits=dict.fromkeys(classes, "train"))


@kept
def datasets_saved_to_disk(painter: Painter) -> Truth:
    """Hugging Face's DatasetDict.save_to_disk: dataset_dict.json, and train,
    validation and test folders of .arrow.
    """
    classes: Classes = {}
    for split, count in {"train": 6, "validation": 3, "test": 3}.items():
        classes |= saved_to_disk(painter, f"{split}/", split, count)
    painter.write("dataset_dict.json", '{"splits": ["train", "validation", "test"]}')
    splits = splits_of(classes, train="train/", validation="validation/", test="test/")
    return Truth(classes, splits=splits, numbers=LEAVES)


@kept
def parquet_without_labels_in_test(painter: Painter) -> Truth:
    """ImageNet's and others' copies on the Hub: the label of every test image is -1, no class;
    README.md beside.
    """
    names = ("cat", "dog", "owl")
    classes: Classes = {}
    for split, count in {"train": 6, "test": 3}.items():
        paths = numbered(f"data/{split}-00000-of-00001.parquet/" + "{}.jpg", count)
        labels = labels_of(count).astype(np.int64) if split == "train" else np.full(count, -1)
        columns = {"image": image_cells(painter, paths), "label": labels}
        painter.write(
            f"data/{split}-00000-of-00001.parquet",
            parquet_of(described(columns, feature_of(names))),
        )
        classes |= {
            path: None if label < 0 else names[label]
            for path, label in zip(paths, labels, strict=True)
        }
    painter.write("README.md", "---\ndataset_info:\n  features:\n  - name: image\n---\n")
    splits = splits_of(classes, train="data/train", test="data/test")
    tests = [path for path in classes if splits[path] == "test"]
    return Truth(classes, splits=splits, numbers={"cat": 0, "dog": 1, "owl": 2}, left_out=tests)


@kept
def parquet_of_bytes_and_words(painter: Painter) -> Truth:
    """A pandas to_parquet: image_bytes as binary, class_name as text, and a column of split."""
    pa = pytest.importorskip("pyarrow")
    paths = numbered("dataset.parquet/{}.jpg", 9)
    labels = labels_of(9)
    names = ("rock", "paper", "scissors")
    parts = ["train"] * 6 + ["val"] * 3
    columns = {
        "image_bytes": [painter.encode(path) for path in paths],
        "class_name": [names[label] for label in labels],
        "split": parts,
    }
    painter.write("dataset.parquet", parquet_of(pa.table(columns)))
    classes: Classes = {path: names[label] for path, label in zip(paths, labels, strict=True)}
    splits = {
        path: "validation" if part == "val" else part
        for path, part in zip(paths, parts, strict=True)
    }
    return Truth(classes, splits=splits, choices=[Truth(classes)])


@kept
def parquet_of_paths(painter: Painter) -> Truth:
    """An index of a data lake: index.parquet of path and label,
    the images beside it in folders of dates.
    """
    pa = pytest.importorskip("pyarrow")
    paths = painter.paint_all("2023-05-01/{:03}.jpg", 4) + painter.paint_all(
        "2023-05-02/{:03}.jpg", 4
    )
    classes: Classes = {path: CLASSES[place % 2] for place, path in enumerate(paths)}
    painter.write(
        "index.parquet", parquet_of(pa.table({"path": paths, "label": list(classes.values())}))
    )
    return Truth(classes)


@kept
def parquet_of_objects(painter: Painter) -> Truth:
    """cppe-5 on the Hub: image, and objects of bbox (x, y, width,
    height), category with names, area and id.
    """
    names = ("Coverall", "Face_Shield", "Gloves")
    boxes: Boxes = {}
    for split, count in {"train": 5, "test": 3}.items():
        paths = numbered(f"data/{split}-00000-of-00001.parquet/" + "{}.jpg", count)
        objects = []
        for path in paths:
            boxes[path] = boxes_of(len(boxes), names)
            bbox = [
                [float(x), float(y), float(x2 - x), float(y2 - y)]
                for _, x, y, x2, y2 in boxes[path]
            ]
            category = [names.index(name) for name, *_ in boxes[path]]
            area = [width * height for _, _, width, height in bbox]
            objects.append(
                {"id": list(range(len(bbox))), "area": area, "bbox": bbox, "category": category}
            )
        columns = {
            "image": image_cells(painter, paths, SIZE),
            "image_id": list(range(count)),
            "objects": objects,
        }
        box = {"feature": {"dtype": "float32", "_type": "Value"}, "length": 4, "_type": "Sequence"}
        category_feature = {"names": list(names), "_type": "ClassLabel"}
        features = {
            "image": {"_type": "Image"},
            "objects": {"feature": {"bbox": box, "category": category_feature}},
        }
        painter.write(
            f"data/{split}-00000-of-00001.parquet", parquet_of(described(columns, features))
        )
    numbers = {name: number for number, name in enumerate(names)}
    return only_boxes(
        boxes, splits=splits_of(boxes, train="data/train", test="data/test"), numbers=numbers
    )


@kept
def parquet_of_masks(painter: Painter) -> Truth:
    """scene_parse_150 on the Hub: image and annotation, both images; the second one is the mask."""
    masks: dict[str, np.ndarray] = {}
    paths = numbered("data/train-00000-of-00001.parquet/{}.jpg", 7)
    cells = []
    for number, path in enumerate(paths):
        masks[path] = classes_mask(number)
        cells.append({"bytes": png(masks[path]), "path": None})
    columns = {"image": image_cells(painter, paths), "annotation": cells}
    features = {"image": {"_type": "Image"}, "annotation": {"_type": "Image"}}
    painter.write("data/train-00000-of-00001.parquet", parquet_of(described(columns, features)))
    splits = dict.fromkeys(masks, "train")
    return only_masks(
        masks, splits=splits, choices=[only_masks(masks), Truth(dict.fromkeys(masks))]
    )


@kept
def json_lines_of_base64(painter: Painter) -> Truth:
    """A labelling service's output: data.jsonl of image (base64) and label."""
    paths = numbered("data.jsonl/{}.jpg", 8)
    classes: Classes = {path: CLASSES[place % 2] for place, path in enumerate(paths)}
    lines = []
    for path in paths:
        text = base64.b64encode(painter.encode(path)).decode()
        lines.append(json.dumps({"id": stem(path), "image": text, "label": classes[path]}) + "\n")
    painter.write("data.jsonl", "".join(lines))
    return Truth(classes)


@kept
def json_of_base64(painter: Painter) -> Truth:
    """A dump of a web page: one JSON array of {"imageData":
    "data:image/jpeg;base64,...", "class": ...}.
    """
    paths = numbered("dump.json/{}.jpg", 8)
    classes: Classes = {path: CLASSES[place % 2] for place, path in enumerate(paths)}
    rows = []
    for path in paths:
        text = base64.b64encode(painter.encode(path)).decode()
        rows.append({"imageData": f"data:image/jpeg;base64,{text}", "class": classes[path]})
    painter.write("dump.json", json.dumps(rows))
    return Truth(classes)


@kept
def tsv_of_base64(painter: Painter) -> Truth:
    """OFA's and MS-Celeb's tables without a header:
    a name, a class and an image as base64 a line, tabs between.
    """
    paths = numbered("faces.tsv/{}.jpg", 8)
    classes: Classes = {path: f"m.0{place % 3}c1" for place, path in enumerate(paths)}
    lines = []
    for path in paths:
        text = base64.b64encode(painter.encode(path)).decode()
        lines.append(f"{stem(path)}\t{classes[path]}\t{text}\n")
    painter.write("faces.tsv", "".join(lines))
    return Truth(classes)


# databases and shards of other libraries ----------------------------------------------------------


def mds(
    painter: Painter, folder: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> None:
    """A folder as MosaicML's MDSWriter leaves it: index.json and a shard;
    columns are in the order of their names.
    """
    sizes = {"int": 8, "jpeg": None, "str": None}
    encodings = dict(sorted(columns.items()))
    samples = []
    for row in rows:
        cells = []
        for name, encoding in encodings.items():
            value = row[name]
            cells.append(struct.pack("<q", value) if encoding == "int" else value)
        lengths = [
            len(cell)
            for cell, kind in zip(cells, encodings.values(), strict=True)
            if sizes[kind] is None
        ]
        samples.append(struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(cells))
    config = {
        "column_encodings": list(encodings.values()),
        "column_names": list(encodings),
        "column_sizes": [sizes[kind] for kind in encodings.values()],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": 67108864,
        "version": 2,
    }
    text = json.dumps(config, sort_keys=True).encode()
    start = 4 + 4 * (len(samples) + 1) + len(text)
    offsets = [start]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    head = struct.pack(f"<{len(offsets) + 1}I", len(samples), *offsets)
    shard = b"".join([head, text, *samples])
    painter.write(f"{folder}shard.00000.mds", shard)
    raw = {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}
    entry = {**config, "raw_data": raw, "samples": len(samples), "zip_data": None}
    painter.write(
        f"{folder}index.json", json.dumps({"shards": [entry], "version": 2}, sort_keys=True)
    )


@kept
def mosaic_streaming(painter: Painter) -> Truth:
    """MosaicML's streaming: train and val, each with index.json and shard.00000.mds of image
    (jpeg) and label (int).
    """
    classes: Classes = {}
    for split, count in {"train": 6, "val": 3}.items():
        paths = numbered(split + "/{}.jpg", count)
        labels = labels_of(count)
        rows = [
            {"image": painter.encode(path), "label": int(label)}
            for path, label in zip(paths, labels, strict=True)
        ]
        mds(painter, f"{split}/", rows, {"image": "jpeg", "label": "int"})
        classes |= by_number(paths, labels)
    return keep_numbers(classes, splits=splits_of(classes, train="train/", validation="val/"))


@kept
def mosaic_streaming_of_words(painter: Painter) -> Truth:
    """One folder of MDS whose class is a text: x (jpeg), y (str)."""
    paths = numbered("{}.jpg", 8)
    classes: Classes = {path: CLASSES[place % 2] for place, path in enumerate(paths)}
    rows = [{"x": painter.encode(path), "y": str(classes[path]).encode()} for path in paths]
    mds(painter, "", rows, {"x": "jpeg", "y": "str"})
    return Truth(classes)


PAGE = 4096


def lmdb_page(number: int, flags: int, nodes: Sequence[bytes]) -> bytes:
    """A page of LMDB: a header, the places of the nodes, and the nodes from its end on."""
    places = []
    end = PAGE
    body = bytearray(PAGE)
    for node in nodes:
        end -= len(node)
        body[end : end + len(node)] = node
        places.append(end)
    lower = 16 + 2 * len(nodes)
    body[:lower] = struct.pack(f"<QHHHH{len(nodes)}H", number, 0, flags, lower, end, *places)
    return bytes(body)


def lmdb(entries: Mapping[bytes, bytes]) -> bytes:
    """The data.mdb of these entries, each of which is smaller than half a page."""
    leaves: list[list[bytes]] = [[]]
    firsts: list[bytes] = []
    for key, value in sorted(entries.items()):
        node = (
            struct.pack("<HHHH", len(value) & 0xFFFF, len(value) >> 16, 0, len(key)) + key + value
        )
        node += bytes(len(node) % 2)
        assert len(node) < 2038
        used = 16 + sum(2 + len(other) for other in leaves[-1])
        if used + 2 + len(node) > PAGE:
            leaves.append([])
        if not leaves[-1]:
            firsts.append(key)
        leaves[-1].append(node)
    pages = [lmdb_page(number, 2, nodes) for number, nodes in enumerate(leaves, 2)]
    if len(leaves) > 1:
        branches = []
        for number, first in enumerate(firsts, 2):
            key = b"" if number == 2 else first
            node = struct.pack("<HHHH", number, 0, 0, len(key)) + key
            branches.append(node + bytes(len(node) % 2))
        pages.append(lmdb_page(2 + len(leaves), 1, branches))
    depth = 1 + (len(leaves) > 1)
    root = 1 + len(pages)
    free = struct.pack("<IHHQQQQQ", PAGE, 8, 0, 0, 0, 0, 0, 2**64 - 1)
    main = struct.pack("<IHHQQQQQ", 0, 0, depth, depth - 1, len(leaves), 0, len(entries), root)
    metas = []
    for number in range(2):
        head = struct.pack("<QHHI", number, 0, 8, 0)
        meta = (
            struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20)
            + free
            + main
            + struct.pack("<QQ", root, number)
        )
        metas.append((head + meta).ljust(PAGE, b"\0"))
    return b"".join([*metas, *pages])


@kept
def lsun_lmdb(painter: Painter) -> Truth:
    """LSUN: bedroom_train_lmdb/data.mdb and church_outdoor_val_lmdb/data.mdb,
    whose values are JPEGs.
    """
    classes: Classes = {}
    for name in ("bedroom", "church_outdoor"):
        for split, count in {"train": 4, "val": 2}.items():
            folder = f"{name}_{split}_lmdb"
            keys = numbered(f"{folder}/" + "{:040x}.jpg", count, 7 if split == "train" else 70)
            painter.write(
                f"{folder}/data.mdb",
                lmdb({stem(path).encode(): painter.encode(path) for path in keys}),
            )
            painter.write(f"{folder}/lock.mdb", bytes(8192))
            classes |= dict.fromkeys(keys, name)
    return Truth(
        classes, splits={path: "train" if "_train_" in path else "validation" for path in classes}
    )


def varint(number: int) -> bytes:
    """A whole number in a protocol buffer."""
    parts = []
    while number > 127:
        parts.append(number % 128 + 128)
        number //= 128
    return bytes([*parts, number])


@kept
def caffe_lmdb(painter: Painter) -> Truth:
    """Caffe's convert_imageset --encoded: ilsvrc12_train_lmdb/data.mdb,
    whose values are Datums of JPEG and label.
    """
    classes: Classes = {}
    for split, count in {"train": 9, "val": 3}.items():
        folder = f"{split}_lmdb"
        paths = numbered(f"{folder}/" + "{:08}_img.jpg", count)
        labels = labels_of(count)
        entries = {}
        for path, label in zip(paths, labels, strict=True):
            content = painter.encode(path)
            datum = (
                b"\x22"
                + varint(len(content))
                + content
                + b"\x28"
                + varint(int(label))
                + b"\x38\x01"
            )
            entries[stem(path).encode()] = datum
        painter.write(f"{folder}/data.mdb", lmdb(entries))
        painter.write(f"{folder}/lock.mdb", bytes(8192))
        classes |= by_number(paths, labels)
    return keep_numbers(
        classes, splits=splits_of(classes, train="train_lmdb", validation="val_lmdb")
    )


def framed(examples: Sequence[Mapping[str, Feature | None]]) -> bytes:
    """A TFRecord file of Examples."""
    parts: list[bytes] = []
    for example in examples:
        data = encode_example(dict(example))
        head, foot, _ = frame(data)
        parts += (head, data, foot)
    return b"".join(parts)


def text_list(*texts: str) -> BytesList:
    """A feature of texts."""
    return BytesList(tuple(text.encode() for text in texts))


@kept
def detection_tfrecords(painter: Painter) -> Truth:
    """TensorFlow's object detection: train.record, test.record,
    and label_map.pbtxt with ids from 1.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "test": 3}.items():
        examples = []
        for path in numbered(split + ".record/{}.jpg", count):
            boxes[path] = boxes_of(len(boxes))
            names = [name for name, *_ in boxes[path]]
            features: dict[str, Feature | None] = {
                "image/encoded": BytesList((painter.encode(path, SIZE),)),
                "image/filename": text_list(name_of(path)),
                "image/source_id": text_list(name_of(path)),
                "image/format": text_list("jpg"),
                "image/height": Int64List((SIZE[1],)),
                "image/width": Int64List((SIZE[0],)),
                "image/object/class/text": text_list(*names),
                "image/object/class/label": Int64List(
                    tuple(CLASSES.index(name) + 1 for name in names)
                ),
            }
            for place, corner in enumerate(("xmin", "ymin", "xmax", "ymax"), 1):
                values = tuple(float(box[place]) / SIZE[1 - place % 2] for box in boxes[path])
                features[f"image/object/bbox/{corner}"] = FloatList(values)
            examples.append(features)
        painter.write(f"{split}.record", framed(examples))
    painter.write(
        "label_map.pbtxt", "item {\n  id: 1\n  name: 'cat'\n}\nitem {\n  id: 2\n  name: 'dog'\n}\n"
    )
    return only_boxes(boxes, splits=splits_of(boxes, train="train.record", test="test.record"))


@kept
def petals_to_the_metal(painter: Painter) -> Truth:
    """Kaggle's Petals to the Metal: train/00-192x192-4.tfrec of id, image, class;
    those of the test have no class.
    """
    classes: Classes = {}
    for split, count in {"train": 6, "val": 3, "test": 3}.items():
        name = f"tfrecords-jpeg-192x192/{split}/00-192x192-{count}.tfrec"
        paths = numbered(name + "/{}.jpg", count)
        examples = []
        for number, (path, label) in enumerate(zip(paths, labels_of(count).tolist(), strict=True)):
            features: dict[str, Feature | None] = {
                "id": text_list(f"{split}{number:03}"),
                "image": BytesList((painter.encode(path),)),
            }
            if split != "test":
                features["class"] = Int64List((label,))
            classes[path] = None if split == "test" else str(label)
            examples.append(features)
        painter.write(name, framed(examples))
    top = "tfrecords-jpeg-192x192"
    splits = splits_of(classes, train=f"{top}/train", validation=f"{top}/val", test=f"{top}/test")
    tests = [path for path in classes if splits[path] == "test"]
    return keep_numbers(classes, splits=splits, left_out=tests)


TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


@kept
def tensorflow_datasets(painter: Painter) -> Truth:
    """A folder that TFDS prepared: beans/0.1.0 of .tfrecord files,
    features.json and label.labels.txt.
    """
    classes: Classes = {}
    top = "beans/0.1.0"
    names = tuple(LEAVES)
    entries = []
    for split, count in {"train": 6, "validation": 3, "test": 3}.items():
        name = f"{top}/beans-{split}.tfrecord-00000-of-00001"
        paths = numbered(name + "/{}.jpg", count)
        examples: list[dict[str, Feature | None]] = []
        for path, label in zip(paths, labels_of(count).tolist(), strict=True):
            examples.append(
                {"image": BytesList((painter.encode(path),)), "label": Int64List((label,))}
            )
            classes[path] = names[label]
        painter.write(name, framed(examples))
        entries.append({"name": split, "shardLengths": [str(count)], "filepathTemplate": TEMPLATE})
    painter.write(f"{top}/label.labels.txt", "".join(f"{name}\n" for name in names))
    info = {"name": "beans", "version": "0.1.0", "splits": entries, "fileFormat": "tfrecord"}
    painter.write(f"{top}/dataset_info.json", json.dumps(info))
    package = "tensorflow_datasets.core.features"
    shape = {"dimensions": ["12", "16", "3"]}
    image = {"shape": shape, "dtype": "uint8", "encodingFormat": "jpeg"}
    features = {
        "image": {"pythonClassName": f"{package}.image_feature.Image", "image": image},
        "label": {
            "pythonClassName": f"{package}.class_label_feature.ClassLabel",
            "classLabel": {"numClasses": "3"},
        },
    }
    value = {
        "pythonClassName": f"{package}.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }
    painter.write(f"{top}/features.json", json.dumps(value))
    splits = splits_of(
        classes, train=f"{top}/beans-train", validation=f"{top}/beans-val", test=f"{top}/beans-test"
    )
    return Truth(classes, splits=splits, numbers=LEAVES)


@kept
def tfrecords_of_raw_pixels(painter: Painter) -> Truth:
    """A 2017 tutorial's train.tfrecords: image_raw (bytes of pixels),
    height, width, depth, label.
    """
    paths = numbered("train.tfrecords/{}", 8)
    labels = labels_of(8)
    examples: list[dict[str, Feature | None]] = []
    for path, label in zip(paths, labels.tolist(), strict=True):
        sizes = {"height": Int64List((12,)), "width": Int64List((16,)), "depth": Int64List((3,))}
        raw = BytesList((painter.pixels(path, (12, 16, 3)).tobytes(),))
        examples.append({**sizes, "label": Int64List((label,)), "image_raw": raw})
    painter.write("train.tfrecords", framed(examples))
    classes = by_number(paths, labels)
    return keep_numbers(
        classes, splits=dict.fromkeys(paths, "train"), choices=[keep_numbers(classes)]
    )


@kept
def compressed_tfrecords(painter: Painter) -> Truth:
    """TFRecords with gzip, train-00000-of-00002.tfrecord.gz,
    with image/encoded and image/class/label from 1.
    """
    classes: Classes = {}
    for part in range(2):
        name = f"train-{part:05}-of-00002.tfrecord.gz"
        paths = numbered(name + "/{}.jpg", 4)
        labels = labels_of(4, first=1)
        examples: list[dict[str, Feature | None]] = []
        for path, label in zip(paths, labels.tolist(), strict=True):
            image = BytesList((painter.encode(path),))
            examples.append({"image/encoded": image, "image/class/label": Int64List((label,))})
        painter.write(name, gzip.compress(framed(examples), mtime=0))
        classes |= by_number(paths, labels)
    return keep_numbers(classes, 1, splits=dict.fromkeys(classes, "train"))


# what has no images, or not all -------------------------------------------------------------------


@kept
def table_of_addresses(painter: Painter) -> Truth:
    """A set that is only a list: train.csv of url,label, and four images that somebody fetched;
    a person downloads.
    """
    paths = painter.paint_all("images/{:03}.jpg", 4)
    rows = [(f"https://example.org/{number:03}.jpg", CLASSES[number % 2]) for number in range(12)]
    painter.write("train.csv", table(rows, "url,label"))
    return Truth({path: CLASSES[place % 2] for place, path in enumerate(paths)}, must_ask=True)


@kept
def torch_tensors(painter: Painter) -> Truth:
    """torchvision's processed MNIST of old: training.pt and test.pt, zips of a pickle;
    a person saves them as .npz.
    """
    paths, images = stacked(painter, "processed/training.pt", 6, (28, 28))
    labels = labels_of(6)
    members = {"training/data.pkl": pickle.dumps("tensors", 2), "training/data/0": images.tobytes()}
    painter.write(
        "processed/training.pt",
        zipped({**members, "training/data/1": labels.astype("<i8").tobytes()}),
    )
    return keep_numbers(by_number(paths, labels), must_ask=True)


@kept
def part_of_a_split_archive(painter: Painter) -> Truth:
    """A download in parts, images.tar.gz.00 and .01, with labels.csv:
    a person joins them first with cat.
    """
    names = numbered("images/{:03}.jpg", 8)
    members, classes = pack(
        painter, "images.tar.gz", {name: CLASSES[place % 2] for place, name in enumerate(names)}
    )
    content = tar(members, "w:gz")
    middle = len(content) // 2
    painter.write("images.tar.gz.00", content[:middle])
    painter.write("images.tar.gz.01", content[middle:])
    rows = [(name_of(name), classes[f"images.tar.gz/{name}"]) for name in names]
    painter.write("labels.csv", table(rows, "image,label"))
    return Truth(classes, must_ask=True)
